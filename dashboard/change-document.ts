/** A change of a document by a merge patch with If-Match, and what a person needs to decide when somebody else was faster (412). */
import type { Version as HistoryVersion } from './api-types.ts';
import { forgetTitles } from './reference-titles.ts';
import { isObject, type Problem, problemOf, type Reply, send } from './send.ts';

export type Members = Readonly<Record<string, unknown>>;

export type Version = { readonly document: Record<string, unknown>; readonly tag: string | null };

export type Conflict = {
  readonly before: Members;
  readonly mine: Members;
  readonly theirs: Version;
  /** The last change, where the history tells it to this caller. */
  readonly last: HistoryVersion | undefined;
};

export type Changed =
  /** Undefined: the response has no representation. */
  { readonly made: Version | undefined } | { readonly problem: Problem } | { readonly conflict: Conflict };

type Change = {
  readonly changed: Members;
  /** The tag of `before`; null: the change is made to any version. */
  readonly tag: string | null;
  /** The version that the change was made from. */
  readonly before: Members;
  readonly hasHistory: boolean;
};

export async function changeDocument(target: string, change: Change): Promise<Changed> {
  const { changed, tag, before, hasHistory } = change;
  const reply = await send('PATCH', target, {
    json: changed,
    headers: { 'Content-Type': 'application/merge-patch+json', ...(tag === null ? {} : { 'If-Match': tag }) },
  });
  const theirs = reply.status === 412 ? versionOf(await send('GET', target)) : undefined;
  if (theirs !== undefined) {
    const last = hasHistory ? await lastChange(target) : undefined;
    return { conflict: { before, mine: changed, theirs, last } };
  }
  const problem = problemOf(reply);
  if (problem !== undefined) return { problem };
  forgetTitles();
  return { made: versionOf(reply) };
}

async function lastChange(target: string): Promise<HistoryVersion | undefined> {
  const { json } = await send('GET', `${target}/history?limit=1`);
  return isObject(json) && Array.isArray(json.items) ? (json.items[0] as HistoryVersion) : undefined;
}

export function versionOf(reply: Reply): Version | undefined {
  return reply.status === 200 && isObject(reply.json)
    ? { document: reply.json, tag: reply.headers.get('ETag') }
    : undefined;
}

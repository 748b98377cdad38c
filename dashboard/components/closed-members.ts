/**
 * The members that this caller may not write. The server alone knows: it is asked by a change that it always refuses, since no request may set
 * `id`, and the refusal names every closed member beside it. Rules may look at the document, so each form asks anew.
 */
import { useEffect, useState } from 'preact/hooks';
import { isCollection, isFileReference, type Listed } from '../description.ts';
import { type Problem, problemOf, send } from '../send.ts';

export type Closed = {
  readonly members: ReadonlySet<string>;
  /** The caller may not write at all. */
  readonly problem?: Problem | undefined;
};

const nothing: Closed = { members: new Set() };
/** The messages of the server about members that are closed, in place of those about a value. */
const closedMessage = /read-only|cannot be changed|unknown property/;

/** @param target of the document that is changed; undefined: a new one. @returns undefined until the server has answered */
export function useClosed(list: Listed, target?: string): Closed | undefined {
  const [closed, setClosed] = useState<Closed | undefined>(isCollection(list) ? undefined : nothing);
  useEffect(() => {
    if (closed === undefined) void findClosed(list, target).then(setClosed, () => setClosed(nothing));
  }, []);
  return closed;
}

/** @param target of the document that is changed; undefined: a new one */
export async function findClosed(list: Listed, target: string | undefined): Promise<Closed> {
  const schema = target === undefined ? list.create : list.member?.patch;
  const names = Object.entries(schema?.properties ?? {}).filter(([, each]) => !isFileReference(each));
  // A value that differs from any other, so that each member is judged as a change.
  const json = { ...Object.fromEntries(names.map(([name]) => [name, [[null]]])), id: '' };
  const isNew = target === undefined;
  const reply = await send(isNew ? 'POST' : 'PATCH', target ?? list.path, {
    json,
    headers: isNew ? {} : { 'Content-Type': 'application/merge-patch+json', 'If-Match': '"none"' },
  });
  const problem = problemOf(reply);
  if (reply.status === 401 || reply.status === 403) return { members: new Set(), problem };
  const closed = (problem?.faults ?? []).filter(({ message }) => closedMessage.test(message));
  return { members: new Set(closed.map(({ pointer }) => pointer.slice(1))) };
}

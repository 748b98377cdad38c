/**
 * A list page as a representation: body, Link (RFC 8288), and the count where it was asked for (§4.2; surface).
 * `first`, `prev` and `next` carry cursors, so walking a long list costs the same on every page; `last` is
 * known only with a count and is the one link that has to skip.
 */
import { formatLink } from '../../http/syntax/link.ts';
import type { MaybePromise, Position } from '../../store/store.ts';
import type { Asked } from '../query/asked.ts';
import type { Ask, Representation } from '../resource.ts';
import type { Listing, ListPage, Prepared } from './listing.ts';

export type ListTarget = {
  /** Path that GET repeats the list at. */
  readonly path: string;
  /** Query component of that path without `page` and `cursor`, ending in `&` unless empty. */
  readonly parameters: string;
};

export type ListAnswer = {
  readonly listing: Listing;
  readonly prepared: Prepared;
  readonly position: Position;
  /** Undefined: no GET repeats the list, so there are no links. */
  readonly target: ListTarget | undefined;
  readonly cacheControl: string;
  readonly fields?: (page: ListPage) => readonly string[];
};

/** `Prefer: count=exact` changes what a list answers, so a cache must look at it (RFC 7240 §2). */
export const varyByPreference: readonly string[] = ['Vary', 'Prefer'];

export function representList(ask: Ask, answer: ListAnswer): MaybePromise<Representation> {
  const { listing, prepared, position } = answer;
  const page = listing.page(prepared, ask.principal, position, ask.party);
  if (page instanceof Promise || ask.preferences.countExact) return representLater(ask, answer, page);
  return representation(answer, page, undefined);
}

async function representLater(
  ask: Ask,
  answer: ListAnswer,
  page: MaybePromise<ListPage>,
): Promise<Representation> {
  const total = ask.preferences.countExact ? await count(answer, ask) : undefined;
  return representation(answer, await page, total);
}

function count(answer: ListAnswer, { principal, party }: Ask): MaybePromise<number> {
  return answer.listing.count(answer.prepared, principal, party);
}

function representation(answer: ListAnswer, page: ListPage, total: number | undefined): Representation {
  const { prepared } = answer;
  const fields = [...(answer.fields?.(page) ?? []), ...varyByPreference];
  if (answer.target !== undefined) fields.push('Link', listLinks(answer.target, prepared.asked, page, total));
  if (total !== undefined) fields.push('X-Total-Count', String(total));
  return {
    content: page.body,
    mediaType: 'application/json',
    validators: { tag: page.tag, modifiedAt: null },
    cacheControl: answer.cacheControl,
    fields,
    ...(total === undefined ? {} : { preferencesApplied: [['count', 'exact'] as const] }),
  };
}

/** The field value of `Link`: `first`, `prev` and `next` where there are such pages, and `last` with a count. */
export function listLinks(
  { path, parameters }: ListTarget,
  asked: Pick<Asked, 'limit' | 'page' | 'position'>,
  page: Pick<ListPage, 'nextCursor' | 'previousCursor'>,
  total: number | undefined,
): string {
  const at = asked.position.from === 'page' ? asked.position.page : asked.page;
  const list: { target: string; rel: string }[] = [
    { target: target(path, at === undefined ? parameters : `${parameters}page=1&`), rel: 'first' },
  ];
  const cursored = (cursor: string, label: number | undefined, rel: string) => {
    const numbered = label === undefined || label < 1 ? '' : `page=${label}&`;
    list.push({ target: target(path, `${parameters}${numbered}cursor=${cursor}&`), rel });
  };
  if (page.previousCursor !== null)
    cursored(page.previousCursor, at === undefined ? undefined : at - 1, 'prev');
  if (page.nextCursor !== null) cursored(page.nextCursor, at === undefined ? undefined : at + 1, 'next');
  if (total !== undefined) {
    const last = Math.max(1, Math.ceil(total / asked.limit));
    list.push({ target: target(path, `${parameters}page=${last}&`), rel: 'last' });
  }
  return formatLink(list);
}

function target(path: string, parameters: string): string {
  return parameters === '' ? path : `${path}?${parameters.slice(0, -1)}`;
}

/**
 * A page of a list as a representation: body, Link (RFC 8288), and the count if requested (§4.2). `first`, `prev` and
 * `next` contain cursors, so every page of a long list costs the same; only `last`, which is known only with a count,
 * has to skip.
 */
import type { FieldName } from '../../http/response-fields.ts';
import { formatLink } from '../../http/syntax/link.ts';
import { formatQueryString, parseQueryString } from '../../http/syntax/query-string.ts';
import type { Ask, Operation, Proposal, Representation, Standing } from '../../kernel/resource.ts';
import { rankedMax } from '../../model/search/search-index.ts';
import { isRanked } from '../../store/filter-shape.ts';
import { type MaybePromise, type Position, whenKnown } from '../../store/store.ts';
import { compileForm } from '../query/form-query.ts';
import type { Asked } from '../query/list-query.ts';
import { alteredCursor, parameterProblem } from '../query/query-faults.ts';
import { clientOf, type ListPage } from './list-page.ts';
import type { Listing, Prepared } from './listing.ts';
import { openStanding } from './served-collection.ts';

export type ListTarget = {
  /** Path at which GET repeats the list. */
  readonly path: string;
  /** The query string of that path without `page` and `cursor`; ends in `&` unless empty. */
  readonly parameters: string;
};

export type ListAnswer = {
  readonly listing: Listing;
  readonly prepared: Prepared;
  readonly position: Position;
  /** The page, if it was read already, and the place in the event log from before. */
  readonly page?: ListPage | undefined;
  readonly place?: string | undefined;
  /** Undefined if no GET repeats the list; then there are no links. */
  readonly target: ListTarget | undefined;
  /** Absent: that of the list. */
  readonly cacheControl?: string;
  readonly keepsFirst?: boolean;
  readonly fields?: (page: ListPage) => readonly string[];
};

/**
 * The header fields that `representation` sets, as lists of stored documents declare them for the API document. Lists of what is declared
 * (resources/program) and attempts of deliveries have fewer.
 */
export const listFields: readonly FieldName[] = ['Comity-Plan', 'Comity-Position', 'Link', 'X-Total-Count'];

/** `Prefer: count=exact` changes the response, so caches must compare the field (RFC 7240 §2). */
export const varyByPreference: readonly string[] = ['Vary', 'Prefer'];

/**
 * Fields of a list that its 304 repeats. A cache takes them over for the list that it has, whose own place may be expired.
 * @param place from before the page was read, if it was
 */
export function repeatedFields(listing: Listing, place = listing.place()): readonly string[] {
  return [...varyByPreference, 'Comity-Position', place];
}

export function representList(ask: Ask, answer: ListAnswer): MaybePromise<Representation> {
  const { listing, prepared, position } = answer;
  const { keepsFirst = false } = answer;
  // Before the page is read: what changes meanwhile then comes after the place.
  const place = answer.page === undefined ? listing.place() : answer.place;
  const page =
    answer.page ??
    listing.page(prepared, ask.principal, position, {
      ...{ party: clientOf(ask), keepsFirst, request: ask.request },
    });
  const placed = { ...answer, place };
  if (page instanceof Promise || ask.preferences.countExact) return representLater(ask, placed, page);
  return representation(ask, placed, page, undefined);
}

async function representLater(
  ask: Ask,
  answer: ListAnswer,
  page: MaybePromise<ListPage>,
): Promise<Representation> {
  const counted = async () => (await page).total ?? (await count(answer, ask));
  const total = ask.preferences.countExact ? await counted() : undefined;
  return representation(ask, answer, await page, total);
}

function count(answer: ListAnswer, ask: Ask): MaybePromise<number> {
  return answer.listing.count(answer.prepared, ask.principal, clientOf(ask));
}

function representation(
  { preferences, principal }: Ask,
  answer: ListAnswer,
  page: ListPage,
  total: number | undefined,
): Representation {
  const { listing, prepared, position } = answer;
  const plan = preferences.plan ? listing.plan(prepared, principal, position) : undefined;
  const applied: (readonly [name: string, value: string])[] = [];
  if (total !== undefined) applied.push(['count', 'exact']);
  if (plan !== undefined) applied.push(['plan', '']);
  const fields = [...(answer.fields?.(page) ?? []), ...varyByPreference];
  if (answer.target !== undefined) fields.push(...listLinks(answer.target, prepared.asked, page, total));
  if (answer.place !== undefined) fields.push('Comity-Position', answer.place);
  if (total !== undefined) fields.push('X-Total-Count', String(total));
  if (plan !== undefined) fields.push('Comity-Plan', plan);
  return {
    content: page.body,
    mediaType: 'application/json',
    validators: { tag: page.tag, modifiedAt: null },
    cacheControl: answer.cacheControl ?? listing.cacheControl(prepared),
    fields,
    ...(applied.length === 0 ? {} : { preferencesApplied: applied }),
  };
}

/** Proxies grant all fields of a response 4 KiB, and each link repeats the query. */
const linkBytesMax = 1_536;
/** The links that go first where all are too long. */
const droppedFirst: readonly string[] = ['last', 'first', 'prev', 'next'];

/** `Link` as name and value: `first`; `prev` and `next` if those pages exist; `last` with a count; without those that are too long. */
export function listLinks(
  { path, parameters }: ListTarget,
  asked: Pick<Asked, 'limit' | 'page' | 'position' | 'sort'>,
  page: Pick<ListPage, 'nextCursor' | 'previousCursor'>,
  total: number | undefined,
): readonly string[] {
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
    const listed = isRanked(asked.sort) ? Math.min(total, rankedMax) : total;
    const last = Math.max(1, Math.ceil(listed / asked.limit));
    list.push({ target: target(path, `${parameters}page=${last}&`), rel: 'last' });
  }
  const whole = formatLink(list);
  if (whole.length <= linkBytesMax) return ['Link', whole];
  for (const [index] of droppedFirst.entries()) {
    const kept = list.filter(({ rel }) => !droppedFirst.slice(0, index + 1).includes(rel));
    const value = formatLink(kept);
    if (kept.length > 0 && value.length <= linkBytesMax) return ['Link', value];
  }
  return [];
}

function target(path: string, parameters: string): string {
  return parameters === '' ? path : `${path}?${parameters.slice(0, -1)}`;
}

export type ListProposal = Proposal & {
  readonly list:
    | {
        readonly prepared: Prepared;
        readonly position: Position;
        readonly target: ListTarget;
        readonly page?: ListPage;
        readonly place?: string;
      }
    | undefined;
};

export function listOperation(listing: Listing): Operation<Standing, never, ListProposal> {
  const { permission } = listing.listable;
  return {
    permission,
    standing: () => openStanding,
    propose: (ask) => {
      const proposal = proposeList(listing, ask);
      const { list } = proposal;
      if (list?.prepared.asked.expansion === undefined) return proposal;
      // Only the read can tell that the page includes more than a response may.
      const place = listing.place();
      const reading = { party: clientOf(ask), request: ask.request };
      const read = listing.page(list.prepared, ask.principal, list.position, reading);
      return whenKnown(read, (page) =>
        page.fault === undefined
          ? { ...proposal, list: { ...list, page, place } }
          : { problem: parameterProblem([page.fault]), list: undefined },
      );
    },
    validators: async (ask, _standing, proposal) => {
      const fields = repeatedFields(listing, proposal?.list?.place);
      return {
        tag: proposal?.list?.page?.tag ?? (await listing.tag(ask.principal, proposal?.list?.prepared)),
        modifiedAt: null,
        cacheControl: listing.cacheControl(proposal?.list?.prepared),
        fields,
      };
    },
    represent: (ask, _standing, proposal) => {
      if (proposal?.list === undefined) throw new Error('a list requires its query');
      return representList(ask, { listing, ...proposal.list });
    },
  };
}

/** Compiles the query string of a request for the list. @param path at which GET repeats it */
export function proposeList(
  listing: Listing,
  { query = '', principal, now }: Pick<Ask, 'query' | 'principal' | 'now'>,
  path = listing.listable.path,
): ListProposal {
  const prepared = listing.prepare(`GET ${query}`, { principal, now }, (target) => {
    const pairs = parseQueryString(query);
    if (pairs === undefined) {
      return { ok: false, faults: [{ kind: 'malformed', message: 'malformed query string' }] };
    }
    return compileForm(pairs, target, listing.limits);
  });
  if ('faults' in prepared) return { problem: parameterProblem(prepared.faults), list: undefined };
  const position = listing.position(prepared);
  if (position === undefined) return { problem: alteredCursor, list: undefined };
  const target = { path, parameters: keptParameters(query, prepared.asked.source) };
  return { problem: null, list: { prepared, position, target } };
}

/** The parameters that links to other pages repeat: the query as sent, without page, cursor and credential. */
function keptParameters(query: string, source: Asked['source']): string {
  if (query === '' || source === undefined || source.length === 0) return '';
  const written = query.includes('page=') || query.includes('cursor=') || query.includes('api_key=');
  return `${written ? formatQueryString(source) : query}&`;
}

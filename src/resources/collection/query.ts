/**
 * QUERY of a collection (§4.9; RFC 10008): the same lists as GET, requested in the content. Location names the stored
 * query, which GET repeats; Content-Location names this result, which GET returns while it is current or cached. If
 * the query could not be stored, the response has neither, and no links to other pages: the client sends `nextCursor`
 * in its next QUERY. What content it must have, and what is refused for its type, the graph decides (http/conduct/request-nodes.ts).
 */
import type { Problem } from '../../http/problem.ts';
import { parseJson } from '../../http/syntax/json.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import { decodeText } from '../../kernel/content/content-shape.ts';
import { json, type OperationDocumentation, pageSchema, pathParameter } from '../../kernel/documentation.ts';
import type {
  Ask,
  Operation,
  Proposal,
  Representation,
  Resource,
  Standing,
  Understood,
} from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import { anonymous, callerOf } from '../../model/principal.ts';
import type { MaybePromise, Position } from '../../store/store.ts';
import { whenKnown } from '../../store/store.ts';
import { compileForm } from '../query/form-query.ts';
import { compileJson } from '../query/json-query.ts';
import type { Compiled, Fault, QueryTextLimits, Target } from '../query/list-query.ts';
import { alteredCursor, parameterProblem, queryProblem } from '../query/query-faults.ts';
import { compileSql } from '../query/sql-query.ts';
import {
  type ListTarget,
  listFields,
  listLinks,
  repeatedFields,
  representList,
  varyByPreference,
} from './list-answer.ts';
import { clientOf, GroupsExceeded, type ListPage } from './list-page.ts';
import type { Listing, Prepared } from './listing.ts';
import { openStanding, type Served, type Serving } from './served-collection.ts';
import type { StoredQueries, StoredQuery } from './stored-queries.ts';

type QueryProposal = Proposal & {
  readonly query:
    | {
        readonly prepared: Prepared;
        readonly position: Position;
        readonly stored: StoredQuery;
        /** The path at which GET repeats the query, if it is stored. */
        readonly location?: string;
        /** A page that is read early, because it may be refused: groups, and documents with what they include. */
        readonly page?: ListPage;
        readonly place?: string;
      }
    | undefined;
};

const notUtf8: Understood<QueryText> = {
  ok: false,
  problem: { code: 'content_malformed', message: 'the content is not UTF-8' },
};

export function queryOperation(served: Served): Operation<Standing, QueryText, QueryProposal> {
  const { listing } = served;
  const { permission } = listing.listable;
  return {
    permission,
    contentTypes: queryTypes,
    contentBytesMax: listing.limits.queryBytesMax,
    understand: (_ask, bytes, mediaType) => {
      const text = decodeText(bytes);
      if (text === undefined) return notUtf8;
      return { ok: true, value: readQueryText(mediaType.type, text) };
    },
    standing: () => openStanding,
    propose: (ask, _standing, content) => {
      if (hasParameters(ask.query)) {
        const message = 'a QUERY takes its parameters in the content, not in the query component';
        return { problem: { code: 'query_parameter_invalid', message }, query: undefined };
      }
      if (content === undefined) throw new Error('a QUERY requires content');
      const proposal = proposeQuery(served, content, ask);
      const proposed = readEarly(listing, ask, proposal, queryProblem);
      return whenKnown(proposed, (read) => keepQuery(served.serving, ask, read));
    },
    validators: async (ask, _standing, proposal) => {
      const repeated = repeatedFields(listing, proposal?.query?.place);
      const listTag =
        proposal?.query?.page?.tag ?? (await listing.tag(ask.principal, proposal?.query?.prepared));
      return {
        tag: queryTag(listTag, proposal?.query?.stored.token ?? ''),
        modifiedAt: null,
        cacheControl: listing.cacheControl(proposal?.query?.prepared),
        fields: [...locationFields(proposal?.query?.location, listTag), ...repeated],
      };
    },
    represent: (ask, _standing, proposal) => {
      if (proposal?.query === undefined) throw new Error('a query result requires its query');
      const { prepared, position, stored, location, page, place } = proposal.query;
      const answer = representList(ask, {
        listing,
        prepared,
        position,
        page,
        place,
        target: location === undefined ? undefined : { path: location, parameters: '' },
        keepsFirst: location !== undefined,
        fields: ({ tag }) => locationFields(location, tag),
      });
      return withToken(answer, stored.token);
    },
  };
}

/**
 * Reads the page of a query that only the read can refuse: one with too many groups, or that includes too much.
 * @param problemOf the refusal of the latter
 */
function readEarly<P extends QueryProposal>(
  listing: Listing,
  { principal, party, request }: Ask,
  proposal: P,
  problemOf: (faults: readonly Fault[]) => Problem,
): MaybePromise<P | QueryProposal> {
  const { query } = proposal;
  const { aggregation, expansion } = query?.prepared.asked ?? {};
  if (query === undefined || (aggregation === undefined && expansion === undefined)) return proposal;
  const read = async (): Promise<P | QueryProposal> => {
    try {
      const how = { party: clientOf({ party, request }), keepsFirst: true, request };
      const place = listing.place();
      const page = await listing.page(query.prepared, principal, query.position, how);
      if (page.fault !== undefined) return { problem: problemOf([page.fault]), query: undefined };
      return { ...proposal, query: { ...query, page, place } };
    } catch (error) {
      if (!(error instanceof GroupsExceeded)) throw error;
      return { problem: { code: 'query_unprocessable', message: error.message }, query: undefined };
    }
  };
  return read();
}

/** Stores the query before the response, because Location must work when the client receives it. */
function keepQuery(
  { storedQueries, queriesPath, addressOf }: Serving,
  { principal, request, now }: Ask,
  proposal: QueryProposal,
): MaybePromise<QueryProposal> {
  const { query } = proposal;
  if (query === undefined) return proposal;
  const owner = principal.kind === 'anonymous' ? addressOf(request) : callerOf(principal);
  return whenKnown(storedQueries.keep(query.stored, owner, now), (kept) =>
    kept ? { ...proposal, query: { ...query, location: `${queriesPath}/${query.stored.token}` } } : proposal,
  );
}

/** Compiles the text of a query with the cache of the listing. */
function proposeQuery(
  served: Served,
  content: QueryText,
  { principal, now }: Pick<Ask, 'principal' | 'now'>,
): QueryProposal {
  const { collection, listing, serving } = served;
  const prepared = listing.prepare(`${content.mediaType} ${content.text}`, { principal, now }, (target) =>
    content.compile(content.text, target, listing.limits),
  );
  if ('faults' in prepared) return { problem: queryProblem(prepared.faults), query: undefined };
  const position = listing.position(prepared);
  if (position === undefined) return { problem: alteredCursor, query: undefined };
  const { mediaType, text } = content;
  const query = { collection: collection.name, mediaType, text };
  prepared.token ??= serving.storedQueries.tokenOf(query);
  const stored = { ...query, token: prepared.token };
  return { problem: null, query: { prepared, position, stored } };
}

/** The tag of the list plus a part of the query's token: two queries to one URI must not share a tag. */
function queryTag(listTag: string | null, token: string): string {
  return `${listTag}.${token.slice(0, tokenTagCharacters)}`;
}

/** The URIs of the stored query and of this result, for the 200 and its 304 (RFC 9110 §15.4.5). */
function locationFields(location: string | undefined, listTag: string): readonly string[] {
  if (location === undefined) return [];
  return ['Location', location, 'Content-Location', `${location}/results/${listTag}`];
}

/** 48 bits of the token suffice to distinguish queries to one URI. */
const tokenTagCharacters = 8;

function withToken(answer: MaybePromise<Representation>, token: string): MaybePromise<Representation> {
  return whenKnown(answer, (found) => ({
    ...found,
    validators: { ...found.validators, tag: queryTag(found.validators.tag, token) },
  }));
}

function hasParameters(query: string | undefined): boolean {
  if (query === undefined || query === '') return false;
  return query.split('&').some((pair) => pair !== '' && !pair.startsWith('api_key='));
}

/** The media types of QUERY content (§4.9.2), in the order of Accept-Query (`acceptFields` of kernel/answer/respond.ts), which has no meaning. */
const queryTypes: readonly string[] = [
  'application/x-www-form-urlencoded',
  'application/json',
  'application/sql',
];

/** The content of a QUERY, with the compiler for its media type. */
type QueryText = {
  readonly mediaType: string;
  readonly text: string;
  readonly compile: (text: string, target: Target, limits: QueryTextLimits) => Compiled;
};

/** Returns the content with its compiler. */
export function readQueryText(mediaType: string, text: string): QueryText {
  if (mediaType === 'application/json') return { mediaType, text, compile: compileJsonText };
  return { mediaType, text, compile: mediaType === 'application/sql' ? compileSql : compileFormText };
}

function compileJsonText(text: string, target: Target, limits: QueryTextLimits): Compiled {
  const parsed = parseJson(text, { depthMax: limits.jsonDepthMax, keysMax: limits.jsonMembersMax });
  return parsed.ok
    ? compileJson(parsed.value, target, limits)
    : malformed(`malformed JSON at offset ${parsed.offset}: ${parsed.message}`);
}

function compileFormText(text: string, target: Target, limits: QueryTextLimits): Compiled {
  const pairs = parseQueryString(text);
  return pairs === undefined ? malformed('malformed form') : compileForm(pairs, target, limits);
}

function malformed(message: string): Compiled {
  return { ok: false, faults: [{ kind: 'malformed', message }] };
}

// `queries/{token}` repeats a stored QUERY with GET, page by page. `queries/{token}/results/{version}` returns one result of it while
// that is current or still cached (§4.9.3). Both apply the access rules of the collection to the caller.

/** A stored query with its collection. */
type Found = {
  readonly stored: StoredQuery;
  readonly served: Served;
  readonly content: QueryText;
};

type QueryStanding = Standing & { readonly found: Found | undefined };

type ResultProposal = QueryProposal & { readonly kept?: ListPage };

/** @param all the collections that may be queried */
export function queryResources(
  { queriesPath: path, storedQueries }: Serving,
  all: readonly Served[],
): readonly Resource[] {
  const byName = new Map(all.map((served) => [served.collection.name, served]));
  const standing = (ask: Ask) => find(storedQueries, byName, ask);
  const mayBeClosed = all.some(
    ({ collection: { access } }) => permission(access.read, 'read', anonymous) === 'denied',
  );
  const shared = { constantFields: [], offers: ['application/json'] };
  const repeat = repeatOperation(path, standing) as Operation;
  const result = resultOperation(path, standing) as Operation;
  return [
    {
      ...shared,
      pattern: `${path}/{token}`,
      documentation: { name: 'Query', tag, parameters: [token] },
      operations: new Map([['GET', { ...repeat, documentation: { ...repeatDocumentation, mayBeClosed } }]]),
    },
    {
      ...shared,
      pattern: `${path}/{token}/results/{version}`,
      documentation: {
        name: 'QueryResult',
        tag,
        parameters: [token, pathParameter('version', 'Id from the Content-Location of a QUERY response.')],
      },
      operations: new Map([['GET', { ...result, documentation: { ...resultDocumentation, mayBeClosed } }]]),
    },
  ];
}

const tag = { name: 'queries', description: 'Stored queries and their results.' };
const token = pathParameter('token', 'Id from the Location of a QUERY response.');

const page = json(
  pageSchema('QueryResult', 'A page of the collection that was queried.', { type: 'object' }),
);

const repeatDocumentation: OperationDocumentation = {
  id: 'repeatQuery',
  summary: 'Repeat a stored query',
  description: 'The Location of a QUERY response: runs the same query on the current state, page by page.',
  paged: 'as-stored',
  mayBeMissing: true,
  gives: { representation: page },
  representationFields: listFields,
  codes: ['query_parameter_invalid'],
};

const resultDocumentation: OperationDocumentation = {
  id: 'readQueryResult',
  summary: 'Read the result of a query',
  description:
    'The Content-Location of a QUERY response: returns that result while it is current or Comity keeps it.',
  mayBeMissing: true,
  gives: { representation: page },
  representationFields: [...listFields, 'ETag'],
  codes: ['result_gone'],
};

type FindStanding = (ask: Ask) => Promise<QueryStanding>;

function repeatOperation(
  path: string,
  standing: FindStanding,
): Operation<QueryStanding, never, QueryProposal> {
  return {
    permission: () => 'depends',
    standing,
    propose: (ask, { found }) => {
      const proposal = proposeRepeat(present(found), ask, ask.query);
      return readEarly(present(found).served.listing, ask, proposal, parameterProblem);
    },
    validators: async (ask, { found }, proposal) => {
      const { listing } = present(found).served;
      const fields = repeatedFields(listing, proposal?.query?.place);
      return {
        tag: proposal?.query?.page?.tag ?? (await listing.tag(ask.principal, proposal?.query?.prepared)),
        modifiedAt: null,
        cacheControl: listing.cacheControl(proposal?.query?.prepared),
        fields,
      };
    },
    represent: (ask, { found }, proposal) => represent(path, ask, present(found), proposal),
  };
}

function resultOperation(
  path: string,
  standing: FindStanding,
): Operation<QueryStanding, never, ResultProposal> {
  return {
    permission: () => 'depends',
    standing,
    propose: async (ask, { found }) => {
      const { listing } = present(found).served;
      const proposal = proposeRepeat(present(found), ask, undefined);
      const tag = ask.captures[1] ?? '';
      if (proposal.query === undefined) return proposal;
      const { prepared, position } = proposal.query;
      const current = await listing.tag(ask.principal, prepared);
      if (tag === current) return readEarly(listing, ask, proposal, parameterProblem);
      const kept = sameAudience(tag, current) ? listing.kept(prepared, position, tag) : undefined;
      return kept === undefined
        ? { problem: { code: 'result_gone' }, query: undefined }
        : { ...proposal, kept };
    },
    represent: (ask, { found }, proposal) => {
      const kept = proposal?.kept;
      if (kept === undefined) return represent(path, ask, present(found), proposal);
      const { prepared } = present(proposal?.query);
      return {
        content: kept.body,
        mediaType: 'application/json',
        validators: { tag: kept.tag, modifiedAt: null },
        cacheControl: present(found).served.listing.cacheControl(prepared),
        // Without a place in the log and a count: those of then are not kept.
        fields: [...varyByPreference, ...listLinks(repeatTarget(path, ask), prepared.asked, kept, undefined)],
      };
    },
  };
}

async function find(
  storedQueries: StoredQueries,
  byName: ReadonlyMap<string, Served>,
  ask: Ask,
): Promise<QueryStanding> {
  const stored = await storedQueries.find(ask.captures[0] ?? '');
  const served = stored === undefined ? undefined : byName.get(stored.collection);
  if (stored === undefined || served === undefined) {
    return { exists: false, visible: false, permitted: false, found: undefined };
  }
  const content = readQueryText(stored.mediaType, stored.text);
  const permitted = served.listing.listable.permission(ask.principal) !== 'denied';
  return { exists: true, visible: true, permitted, found: { stored, served, content } };
}

/** Compiles the stored query, at the page that `cursor` or `page` names. */
function proposeRepeat(
  { content, served }: Found,
  ask: Pick<Ask, 'principal' | 'now'>,
  query: string | undefined,
): QueryProposal {
  const proposal = proposeQuery(served, content, ask);
  if (proposal.query === undefined || query === undefined || query === '') return proposal;
  const pairs = (parseQueryString(query) ?? []).filter(([name]) => name !== 'api_key');
  const foreign = pairs.find(([name]) => name !== 'cursor' && name !== 'page');
  if (foreign !== undefined) {
    const message = `unknown query parameter ${JSON.stringify(foreign[0].slice(0, 64))}; a stored query has the parameters cursor and page`;
    return { problem: parameterProblem([{ kind: 'malformed', message }]), query: undefined };
  }
  const { listing } = served;
  const moved = compileForm(pairs, listing.listable, listing.limits);
  if (!moved.ok) return { problem: parameterProblem(moved.faults), query: undefined };
  const { prepared } = proposal.query;
  const { position: askedPosition, page } = moved.asked;
  const entry = { ...prepared, asked: { ...prepared.asked, position: askedPosition, page } };
  const position = listing.position(entry);
  if (position === undefined) return { problem: alteredCursor, query: undefined };
  return { problem: null, query: { ...proposal.query, prepared: entry, position } };
}

/** A stored query, whose pages its URI names by `cursor` and `page` alone. */
function repeatTarget(path: string, { captures }: Ask): ListTarget {
  return { path: `${path}/${captures[0]}`, parameters: '' };
}

function represent(path: string, ask: Ask, { served }: Found, proposal: QueryProposal | undefined) {
  if (proposal?.query === undefined) throw new Error('a stored query requires its query');
  const { prepared, position, page, place } = proposal.query;
  return representList(ask, {
    listing: served.listing,
    prepared,
    position,
    page,
    place,
    target: repeatTarget(path, ask),
  }) satisfies Representation | Promise<Representation>;
}

/** Tags consist of a version and a mark of the audience (listing.ts): a cached result never serves another audience. */
function sameAudience(a: string, b: string): boolean {
  return a.slice(a.indexOf('.')) === b.slice(b.indexOf('.'));
}

function present<T>(found: T | undefined): T {
  if (found === undefined) throw new Error('the stored query does not exist');
  return found;
}

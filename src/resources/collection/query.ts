/**
 * QUERY of a collection (§4.9; RFC 10008): the same lists as GET, requested in the content. Location names the stored
 * query, which GET repeats; Content-Location names this result, which GET returns while it is current or cached. If
 * the query could not be stored, the response has neither, and no links to other pages: the client sends `nextCursor`
 * in its next QUERY.
 */
import type { Problem } from '../../http/problem.ts';
import { type JsonLimits, parseJson } from '../../http/syntax/json.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import { decodeText } from '../../kernel/content/content-shape.ts';
import type { CallerAddress } from '../../kernel/rate-limit/caller-address.ts';
import type {
  Ask,
  Operation,
  Proposal,
  Representation,
  Standing,
  Understood,
} from '../../kernel/resource.ts';
import type { Permission } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { callerOf, type Principal } from '../../model/principal.ts';
import { type MaybePromise, type Position, whenKnown } from '../../store/store.ts';
import type { StoredQueries, StoredQuery } from '../queries/stored-queries.ts';
import { compileForm } from '../query/form-query.ts';
import { compileJson } from '../query/json-query.ts';
import type { Compiled, Fault, QueryLimits, Target } from '../query/list-query.ts';
import { compileSql } from '../query/sql-query.ts';
import { alteredCursor, queryProblem } from './fault-problem.ts';
import { GroupsExceeded } from './group-page.ts';
import { repeatedFields, representList } from './list-answer.ts';
import { clientOf, type ListPage } from './list-page.ts';
import type { Listing, Prepared } from './listing.ts';

export type QueryProposal = Proposal & {
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

export type QueryOptions = {
  readonly collection: Collection;
  readonly listing: Listing;
  readonly limits: QueryTextLimits;
  readonly storedQueries: StoredQueries;
  readonly queriesPath: string;
  readonly addressOf: CallerAddress;
  /** For the QUERY, and for the GET that repeats it. */
  readonly permission: (principal: Principal) => Permission;
};

const notUtf8: Understood<QueryText> = {
  ok: false,
  problem: { code: 'content_malformed', message: 'the content is not UTF-8' },
};

const open: Standing = { exists: true, visible: true, permitted: true };

export function queryOperation(options: QueryOptions): Operation<Standing, QueryText, QueryProposal> {
  const { collection, listing } = options;
  return {
    permission: options.permission,
    contentTypes: queryTypes,
    contentBytesMax: options.limits.queryBytesMax,
    understand: (_ask, bytes, mediaType) => {
      const text = decodeText(bytes);
      if (text === undefined) return notUtf8;
      return { ok: true, value: readQueryText(mediaType.type, text) };
    },
    standing: () => open,
    propose: (ask, _standing, content) => {
      if (hasParameters(ask.query)) {
        const message = 'a QUERY takes its parameters in the content, not in the query component';
        return { problem: { code: 'query_parameter_invalid', message }, query: undefined };
      }
      if (content === undefined) throw new Error('a QUERY requires content');
      const proposed = readEarly(options, ask, proposeQuery(options, content, ask.principal), queryProblem);
      return whenKnown(proposed, (proposal) => keepQuery(options, ask, proposal));
    },
    validators: async (ask, _standing, proposal) => {
      const repeated = repeatedFields(listing, proposal?.query?.place);
      const listTag =
        proposal?.query?.page?.tag ?? (await listing.tag(ask.principal, proposal?.query?.prepared));
      return {
        tag: queryTag(listTag, proposal?.query?.stored.token ?? ''),
        modifiedAt: null,
        cacheControl: collection.cacheControl,
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
        cacheControl: collection.cacheControl,
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
export function readEarly<P extends QueryProposal>(
  { listing }: QueryOptions,
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
  { storedQueries, queriesPath, addressOf }: QueryOptions,
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
export function proposeQuery(options: QueryOptions, content: QueryText, principal: Principal): QueryProposal {
  const { collection, listing, storedQueries } = options;
  const prepared = listing.prepare(`${content.mediaType} ${content.text}`, principal, (target) =>
    content.compile(content.text, target, options.limits),
  );
  if ('faults' in prepared) return { problem: queryProblem(prepared.faults), query: undefined };
  const position = listing.position(prepared);
  if (position === undefined) return { problem: alteredCursor, query: undefined };
  const { mediaType, text } = content;
  const query = { collection: collection.name, mediaType, text };
  prepared.token ??= storedQueries.tokenOf(query);
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

/** The media types of QUERY content (§4.9.2), in the order of Accept-Query, where order has no meaning. */
const queryTypes: readonly string[] = [
  'application/x-www-form-urlencoded',
  'application/json',
  'application/sql',
];

/** The content of a QUERY, with the compiler for its media type. */
export type QueryText = {
  readonly mediaType: string;
  readonly text: string;
  readonly compile: (text: string, target: Target, limits: QueryTextLimits) => Compiled;
};

export type QueryTextLimits = QueryLimits & {
  readonly json: JsonLimits;
  /** Octets of content. */
  readonly queryBytesMax: number;
};

/** Returns the content with its compiler. */
export function readQueryText(mediaType: string, text: string): QueryText {
  if (mediaType === 'application/json') return { mediaType, text, compile: compileJsonText };
  return { mediaType, text, compile: mediaType === 'application/sql' ? compileSql : compileFormText };
}

function compileJsonText(text: string, target: Target, limits: QueryTextLimits): Compiled {
  const parsed = parseJson(text, limits.json);
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

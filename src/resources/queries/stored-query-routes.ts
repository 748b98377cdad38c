/**
 * `queries/{token}` repeats a stored QUERY with GET, page by page. `queries/{token}/results/{version}` returns one
 * result of it while that is current or still cached (§4.9.3). Both apply the access rules of the collection to the
 * caller.
 */
import { parseQueryString } from '../../http/syntax/query-string.ts';
import { json, type OperationDocumentation, pageSchema, pathParameter } from '../../kernel/documentation.ts';
import type { Ask, Operation, Representation, Resource, Standing } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import { anonymous, type Principal } from '../../model/principal.ts';
import { alteredCursor, parameterProblem } from '../collection/fault-problem.ts';
import { repeatedFields, representList } from '../collection/list-answer.ts';
import type { ListPage } from '../collection/list-page.ts';
import {
  proposeQuery,
  type QueryOptions,
  type QueryProposal,
  type QueryText,
  readEarly,
  readQueryText,
} from '../collection/query.ts';
import { compileForm } from '../query/form-query.ts';

import type { StoredQueries, StoredQuery } from './stored-queries.ts';

/** A stored query with the query options of its collection. */
type Found = {
  readonly stored: StoredQuery;
  readonly options: QueryOptions;
  readonly content: QueryText;
};

type QueryStanding = Standing & { readonly found: Found | undefined };

type ResultProposal = QueryProposal & { readonly kept?: ListPage };

/** @param byCollection query options by name of the collection */
export function queryResources(
  path: string,
  storedQueries: StoredQueries,
  byCollection: ReadonlyMap<string, QueryOptions>,
): readonly Resource[] {
  const standing = (ask: Ask) => find(storedQueries, byCollection, ask);
  const mayBeClosed = [...byCollection.values()].some(
    ({ collection: { access } }) => permission(access.read, 'read', anonymous) === 'denied',
  );
  const shared = { constantFields: [], offers: ['application/json'] };
  const repeat = repeatOperation(path, standing) as Operation;
  const result = resultOperation(path, standing) as Operation;
  return [
    {
      ...shared,
      pattern: `${path}/{token}`,
      documentation: { name: 'Query', noun: 'a stored query', tag, parameters: [token] },
      operations: new Map([['GET', { ...repeat, documentation: { ...repeatDocumentation, mayBeClosed } }]]),
    },
    {
      ...shared,
      pattern: `${path}/{token}/results/{version}`,
      documentation: {
        name: 'QueryResult',
        noun: 'the result of a query',
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
  representationFields: ['Comity-Position', 'Link', 'X-Total-Count'],
  codes: ['query_parameter_invalid'],
};

const resultDocumentation: OperationDocumentation = {
  id: 'readQueryResult',
  summary: 'Read the result of a query',
  description:
    'The Content-Location of a QUERY response: returns that result while it is current or Comity keeps it.',
  mayBeMissing: true,
  gives: { representation: page },
  representationFields: ['Comity-Position', 'ETag', 'Link'],
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
      const proposal = proposeRepeat(present(found), ask.principal, ask.query);
      return readEarly(present(found).options, ask, proposal, parameterProblem);
    },
    validators: async (ask, { found }, proposal) => {
      const { listing, collection } = present(found).options;
      const fields = repeatedFields(listing, proposal?.query?.place);
      return {
        tag: proposal?.query?.page?.tag ?? (await listing.tag(ask.principal, proposal?.query?.prepared)),
        modifiedAt: null,
        cacheControl: collection.cacheControl,
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
      const { options } = present(found);
      const proposal = proposeRepeat(present(found), ask.principal, undefined);
      const tag = ask.captures[1] ?? '';
      if (proposal.query === undefined) return proposal;
      const { prepared, position } = proposal.query;
      const current = await options.listing.tag(ask.principal, prepared);
      if (tag === current) return readEarly(options, ask, proposal, parameterProblem);
      const kept = sameAudience(tag, current) ? options.listing.kept(prepared, position, tag) : undefined;
      return kept === undefined
        ? { problem: { code: 'result_gone' }, query: undefined }
        : { ...proposal, kept };
    },
    represent: (ask, { found }, proposal) => {
      const kept = proposal?.kept;
      if (kept === undefined) return represent(path, ask, present(found), proposal);
      return {
        content: kept.body,
        mediaType: 'application/json',
        validators: { tag: kept.tag, modifiedAt: null },
        cacheControl: present(found).options.collection.cacheControl,
      };
    },
  };
}

async function find(
  storedQueries: StoredQueries,
  byCollection: ReadonlyMap<string, QueryOptions>,
  ask: Ask,
): Promise<QueryStanding> {
  const stored = await storedQueries.find(ask.captures[0] ?? '');
  const options = stored === undefined ? undefined : byCollection.get(stored.collection);
  if (stored === undefined || options === undefined) {
    return { exists: false, visible: false, permitted: false, found: undefined };
  }
  const content = readQueryText(stored.mediaType, stored.text);
  const permitted = options.permission(ask.principal) !== 'denied';
  return { exists: true, visible: true, permitted, found: { stored, options, content } };
}

/** Compiles the stored query, at the page that `cursor` or `page` names. */
function proposeRepeat(
  { content, options }: Found,
  principal: Principal,
  query: string | undefined,
): QueryProposal {
  const proposal = proposeQuery(options, content, principal);
  if (proposal.query === undefined || query === undefined || query === '') return proposal;
  const pairs = (parseQueryString(query) ?? []).filter(([name]) => name !== 'api_key');
  const foreign = pairs.find(([name]) => name !== 'cursor' && name !== 'page');
  if (foreign !== undefined) {
    const message = `unknown query parameter ${JSON.stringify(foreign[0].slice(0, 64))}; a stored query has the parameters cursor and page`;
    return { problem: parameterProblem([{ kind: 'malformed', message }]), query: undefined };
  }
  const moved = compileForm(pairs, options.listing.listable, options.limits);
  if (!moved.ok) return { problem: parameterProblem(moved.faults), query: undefined };
  const { prepared } = proposal.query;
  const { position: askedPosition, page } = moved.asked;
  const entry = { ...prepared, asked: { ...prepared.asked, position: askedPosition, page } };
  const position = options.listing.position(entry);
  if (position === undefined) return { problem: alteredCursor, query: undefined };
  return { problem: null, query: { ...proposal.query, prepared: entry, position } };
}

function represent(path: string, ask: Ask, { options }: Found, proposal: QueryProposal | undefined) {
  if (proposal?.query === undefined) throw new Error('a stored query requires its query');
  const { prepared, position, page, place } = proposal.query;
  return representList(ask, {
    listing: options.listing,
    prepared,
    position,
    page,
    place,
    target: { path: `${path}/${ask.captures[0]}`, parameters: '' },
    cacheControl: options.collection.cacheControl,
  }) satisfies Representation | Promise<Representation>;
}

/** Tags consist of a version and a mark of the audience (listing.ts): a cached result never serves another audience. */
function sameAudience(a: string, b: string): boolean {
  return a.slice(a.indexOf('.')) === b.slice(b.indexOf('.'));
}

function present(found: Found | undefined): Found {
  if (found === undefined) throw new Error('the stored query does not exist');
  return found;
}

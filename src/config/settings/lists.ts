/** Settings of lists and queries (§4.2, §4.9). */
import { fixed, integer, section } from '../setting.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const dayS = 86_400;

export const listsSettings = section('Lists and queries', {
  listLimitDefault: integer(
    { unit: 'items', default: 20, least: 1, most: 10_000 },
    'Items on a page when the request has no `limit`.',
  ),
  listLimitMax: integer(
    { unit: 'items', default: 1000, least: 1, most: 10_000 },
    'Greatest `limit` of a request; a greater one is answered 400.',
  ),
  pageBytesMax: integer(
    { unit: 'bytes', default: 4 * MiB, least: KiB, most: 256 * MiB },
    'Length of the items on a page. A page ends with the item that reaches it, even if `limit` allows more; `nextCursor` leads to the next page.',
  ),
  slowListMs: integer(
    { unit: 'ms', default: 20, least: 0, most: 3_600_000 },
    'Time of reading a page from which administrators find its shape among the slow lists. 0 notes every page.',
  ),
  filterDepthMax: fixed({ unit: 'levels', value: 16 }, 'Nesting of `and`, `or` and `not` in a filter.'),
  filterNodesMax: fixed({ unit: 'nodes', value: 256 }, 'Comparisons and connectives in a filter.'),
  filterReferenceDepthMax: fixed(
    { unit: 'references', value: 3 },
    'References that the path of one field in a filter may lead through: `ticketId.customerId.organisationId` leads through two.',
  ),
  filterReferencesMax: fixed(
    { unit: 'references', value: 8 },
    'References that the paths of all fields in a filter may lead through together.',
  ),
  inValuesMax: fixed({ unit: 'values', value: 1000 }, 'Values that one `in` may list.'),
  searchTermsMax: fixed({ unit: 'terms', value: 8 }, 'Words, prefixes and phrases that `q` may contain.'),
  expandDepthMax: fixed(
    { unit: 'references', value: 3 },
    'References that one path of `expand` may follow; a longer one is answered 400.',
  ),
  expandPathsMax: fixed(
    { unit: 'names', value: 10 },
    'Paths that `expand`, and names that `counts` may list.',
  ),
  expandDocumentsMax: integer(
    { unit: 'documents', default: 2000, least: 1, most: 100_000 },
    'Documents that `expand` may add to a response; a request for more is answered 400.',
  ),
  expandBytesMax: integer(
    { unit: 'bytes', default: 4 * MiB, least: KiB, most: 256 * MiB },
    'Length of the documents that `expand` may add to a response; a request for more is answered 400.',
  ),
  queryBytesMax: integer(
    { unit: 'bytes', default: 128 * KiB, least: KiB, most: 16 * MiB },
    'Length of the content of a QUERY, with and without content codings; then 413.',
  ),
  sqlCharactersMax: fixed({ unit: 'characters', value: 8192 }, 'Length of a QUERY in SQL.'),
  aggregateGroupsMax: integer(
    { unit: 'groups', default: 10_000, least: 1, most: 50_000 },
    'Groups of an aggregate query before `having`; one with more is answered 422.',
  ),
  aggregateColumnsMax: fixed(
    { unit: 'columns', value: 32 },
    'Fields that an aggregate query groups by and results that it computes.',
  ),
  storedQuerySeconds: integer(
    { unit: 'seconds', default: dayS, least: 1, most: 365 * dayS },
    'Time for which the `Location` of a QUERY repeats it. That of a short one contains the query and does not expire.',
  ),
  storedQueryBytesMax: fixed(
    { unit: 'bytes', value: 128 * KiB },
    'Length of a QUERY up to which it is stored; a longer one is answered without `Location`.',
  ),
  storedQueriesPerOwnerBytesMax: fixed(
    { unit: 'bytes', value: 4 * MiB },
    'Disk space for the QUERYs that one principal, or one address without a credential, may store within `storedQuerySeconds`; further ones are answered without `Location`.',
  ),
  storedQueriesBytesMax: integer(
    { unit: 'bytes', default: 256 * MiB, least: 0, most: 65_536 * MiB },
    'Disk space for the QUERYs that all callers may store within `storedQuerySeconds`; further ones are answered without `Location`.',
  ),
  resultCacheBytesMax: integer(
    { unit: 'bytes', default: 16 * MiB, least: 0, most: 4096 * MiB },
    'Memory for results of lists that are requested again, and of queries, each kept until its collection changes; 0 keeps none.',
  ),
  planCacheBytesMax: fixed(
    { unit: 'bytes', value: 16 * MiB },
    'Memory for compiled lists and queries that are requested again, each kept for the next request with the same query.',
  ),
});

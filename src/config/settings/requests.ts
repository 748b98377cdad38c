/** Settings that bound one request and its content (§8), and those of lists and queries (§4.2, §4.9). */
import { refuseFieldNames, refuseOrigins } from '../refusals.ts';
import { choice, fixed, integer, section, text, toggle } from '../setting.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const dayS = 86_400;

export const requestsSettings = section('Requests', {
  targetBytesMax: integer(
    { unit: 'bytes', default: 8000, least: 256, most: 64 * KiB },
    'Length of a request target; then 414. Send longer queries as the content of a QUERY.',
  ),
  fieldsBytesMax: integer(
    { unit: 'bytes', default: 16 * KiB, least: KiB, most: MiB },
    'Length of the request line and header section together; then 431.',
  ),
  bodyBytesMax: integer(
    { unit: 'bytes', default: MiB, least: KiB, most: 256 * MiB },
    'Length of request content as it is transferred; then 413.',
  ),
  actionBytesMax: integer(
    { unit: 'bytes', default: 256 * KiB, least: KiB, most: 256 * MiB },
    'Length of the content of requests to the resources of the program itself, such as logins, keys and endpoints, and of bulk deletions, with and without content codings; then 413.',
  ),
  decodedBytesMax: integer(
    { unit: 'bytes', default: MiB, least: KiB, most: 256 * MiB },
    'Length of request content after decompression; then 413.',
  ),
  contentInlineBytesMax: integer(
    { unit: 'bytes', default: 32 * KiB, least: 0, most: 256 * MiB },
    'Length of content, or of the resource that it changes, up to which the event loop parses and checks it; content threads do it for longer content. 4 KiB at most where the schema has `uniqueItems`.',
  ),
  contentThreads: integer(
    { unit: 'threads', default: 0, least: 0, most: 64 },
    'Threads that parse and check long content; one principal or address uses at most all but one of them. 0: one for each processor, from 2 to 4.',
  ),
  contentQueueBytesMax: fixed(
    { unit: 'bytes', value: 64 * MiB },
    'Content that may wait for such a thread. Beyond it, Comity answers 503 to the newest request of the caller that has the most waiting.',
  ),
  contentWorkTimeoutMs: fixed(
    { unit: 'ms', value: 10_000 },
    'Time that such a thread may take for the content of one request, which a pattern of the schema can make endless; then 422.',
  ),
  documentCharactersMax: integer(
    { unit: 'characters', default: 2 * MiB, least: KiB, most: 256 * MiB },
    'Length of the representation of a resource after a patch; then 413.',
  ),
  unreadContentBytesMax: integer(
    { unit: 'bytes', default: 128 * MiB, least: 0, most: 1024 * MiB },
    'Content of a refused request that Comity reads and discards, so that the client or the proxy sees the answer; then it cuts the connection.',
  ),
  unreadContentTimeoutMs: integer(
    { unit: 'ms', default: 2000, least: 0, most: 60_000 },
    'Silence of a client with such content before Comity cuts the connection. The limits of time and rate for content hold for it as well.',
  ),
  jsonDepthMax: fixed(
    { unit: 'levels', value: 64 },
    'Nesting of arrays and objects in JSON content; then 400.',
  ),
  jsonMembersMax: fixed(
    { unit: 'members', value: 10_000 },
    'Members of one object in JSON content; then 400.',
  ),
  formFieldsMax: fixed(
    { unit: 'fields', value: 1000 },
    'Fields of a form, urlencoded or multipart; then 400.',
  ),
  multipartFieldBytesMax: fixed(
    { unit: 'bytes', value: MiB },
    'Length of one field of a multipart form; then 413.',
  ),
  multipartHeaderPairsMax: fixed(
    { unit: 'fields', value: 16 },
    'Header fields of one part of a multipart form; then 400.',
  ),
  multipartHeaderBytesMax: fixed(
    { unit: 'bytes', value: 8 * KiB },
    'Length of the header section of one part of a multipart form; then 400.',
  ),
  patchOperationsMax: fixed({ unit: 'operations', value: 1000 }, 'Operations of a JSON Patch; then 400.'),
  validationErrorsMax: fixed(
    { unit: 'errors', value: 20 },
    'Entries of `errors` in one answer; further ones are left out.',
  ),
  cascadeMax: integer(
    { unit: 'documents', default: 1000, least: 1, most: 10_000 },
    'Documents that one unit deletes or changes because they refer to a deleted one. A deletion with more becomes an operation (202), in units of as many, for at most 100,000 documents of collections that others refer to. Also the references in a row that a deletion follows.',
  ),
  cascadeBytesMax: fixed(
    { unit: 'bytes', value: 16 * MiB },
    'Length of the documents that one unit of a deletion changes because they refer to a deleted one.',
  ),
  bulkDeleteIdsMax: fixed({ unit: 'ids', value: 1000 }, 'Entries of `ids` in a bulk deletion; then 422.'),
  bulkItemsMax: integer(
    { unit: 'items', default: 1000, least: 1, most: 10_000 },
    'Entries of `items` in a bulk request, and documents that one PATCH of a collection changes; then 422.',
  ),
  // All of it is one unit, which the main thread gives to the writer at once: 7 MB took some 90 ms, half of it garbage collection.
  bulkBytesMax: integer(
    { unit: 'bytes', default: 4 * MiB, least: KiB, most: 256 * MiB },
    'Length of the content of a bulk request; then 413. With a content coding, `decodedBytesMax` bounds it as well.',
  ),
  importBytesMax: integer(
    { unit: 'bytes', default: 1024 * MiB, least: KiB, most: 1_000_000_000_000 },
    'Length of the content of an import, which is written while it arrives; then 413. One that is atomic or has an Idempotency-Key is held whole, and is bounded by `bulkBytesMax`.',
  ),
  idempotencySeconds: integer(
    { unit: 'seconds', default: dayS, least: 1, most: 30 * dayS, isCommon: true },
    'Time for which the answer to a request with an Idempotency-Key is kept for replay.',
  ),
  operationSeconds: integer(
    { unit: 'seconds', default: dayS, least: 1, most: 30 * dayS, isCommon: true },
    'Time for which the outcome of a request with `Prefer: respond-async` is kept.',
  ),
  compressionBytesMin: fixed(
    { unit: 'bytes', value: KiB },
    'Length from which a representation is compressed for clients that accept it.',
  ),
  traceMethod: toggle('Answers TRACE instead of refusing it.'),
  weakIfMatch: toggle(
    'Takes the weak form of the current entity tag in If-Match, for clients behind a proxy that weakens tags. RFC 9110 §13.1.1 asks for the strong one.',
  ),
  corsOrigins: text(
    '',
    { refuse: refuseOrigins },
    'Comma-separated origins whose pages may call the API from a browser, or `*` for any; empty for none.',
  ),
  corsHeaders: text(
    '',
    { refuse: refuseFieldNames },
    'Comma-separated request header fields that these pages may send besides those that the API reads itself, or `*` for any, which browsers take only from pages without credentials.',
  ),
  corsExpose: text(
    '',
    { refuse: refuseFieldNames },
    'Comma-separated response header fields that scripts of these pages may read besides those of the API itself, or `*` for any, under the same condition.',
  ),
  corsCredentials: choice(
    ['auto', 'on', 'off'],
    'auto',
    'Whether pages of `corsOrigins` may send cookies and other credentials of the browser. `auto`: only where the origins are listed; `on` with `*` is refused.',
  ),
  corsMaxAgeSeconds: fixed(
    { unit: 'seconds', value: dayS },
    'Time for which a browser may cache the answer to a preflight request.',
  ),
});

/** Settings of the memory budget and of rate limits (§7, §8). */
export const memorySettings = section('Memory', {
  memoryBytesMax: integer(
    { unit: 'bytes', default: 0, least: 0, most: 1_000_000_000_000 },
    'Memory for requests under way: request content, answers and events that clients have not received yet. Beyond it, requests are answered 503 and streams wait; an eighth is reserved for administrators. 0: a fourth of the memory of the control group or the machine, and at most half of the heap; other values are at least 16 MiB.',
  ),
  memorySharePercentMax: integer(
    { unit: '%', default: 50, least: 1, most: 100 },
    'Part of that memory that one principal, or one address without a credential, may use.',
  ),
});

export const limitsSettings = section('Rate limits', {
  rateLimitReads: integer(
    { unit: 'requests/min', default: 6000, least: 0, most: 1_000_000_000, isCommon: true },
    'GET, HEAD and QUERY requests that one principal, or one address without a credential, may make in a minute; then 429. 0 sets no limit.',
  ),
  rateLimitWrites: integer(
    { unit: 'requests/min', default: 3000, least: 0, most: 1_000_000_000, isCommon: true },
    'Requests with other methods that one principal, or one address without a credential, may make in a minute; then 429. 0 sets no limit.',
  ),
  rateLimitFileKibibytes: integer(
    { unit: 'KiB', default: 0, least: 0, most: 1_000_000_000, isCommon: true },
    'Part of a file, sent or received, that counts as one more request of its kind, once it is known. 0: a request with a file counts as any other.',
  ),
  rateLimitSyncMs: fixed(
    { unit: 'ms', value: 250 },
    'Time between two exchanges of the counts of processes on one database; what they admit in between may exceed the limit.',
  ),
  rateLimitKeysMax: fixed(
    { unit: 'callers', value: 25_000 },
    'Principals and addresses counted in a minute, each for reads and for writes. A further one replaces one with few requests, or else shares one count with other callers.',
  ),
});

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
    { unit: 'seconds', default: dayS, least: 1, most: 365 * dayS, isCommon: true },
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
    { unit: 'bytes', default: 256 * MiB, least: 0, most: 65_536 * MiB, isCommon: true },
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

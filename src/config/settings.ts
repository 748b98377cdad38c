/**
 * Every setting of the program (§8), each with its unit, default, bounds and meaning: the one table that the loader,
 * the type `Settings` and docs/reference/settings.md come from. Rooms get the few values they need, never the table.
 *
 * Each setting has one environment variable, named by rule (`bodyBytesMax` is COMITY_BODY_BYTES_MAX), and one
 * name in `settings` of the configuration. A limit that is not here does not exist: no room has bounds of its own
 * that an operator could want to move.
 */
import { refuseKey, refuseOrigins } from './refusals.ts';
import { choice, integer, section, text, toggle, type ValueOf } from './setting.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const dayS = 86_400;

export const settings = {
  ...section('Program', {
    config: text(
      'comity.config.ts',
      {},
      'Path of the configuration file; `npm start` serves `examples/shop/comity.config.ts`.',
    ),
    data: text('./data', {}, 'Folder of the embedded store and its files; created when missing.'),
    adminKey: text(
      undefined,
      { charactersMax: 255, secret: true, refuse: refuseKey },
      'A key, starting with `sk_`, that is accepted as administrator. Without it one is made at the first start and printed once.',
    ),
    logLevel: choice(
      ['fatal', 'error', 'warn', 'info', 'debug', 'silent'],
      'info',
      'Least level of a log line. `debug` logs every answer, and shows the stack of an error that ends the program.',
    ),
    development: toggle('Adds `Comity-Trace` to every answer: the decisions that led to its status.'),
  }),

  ...section('Listening', {
    host: text(
      '127.0.0.1',
      { charactersMax: 255 },
      'Address to listen on. One that is not loopback needs `COMITY_BEHIND_PROXY=on`.',
    ),
    port: integer(
      { unit: 'port number', default: 4000, least: 0, most: 65_535 },
      'Port to listen on; 0 picks a free one, which is printed.',
    ),
    behindProxy: toggle(
      'Declares that a proxy which speaks TLS stands in front, so that any address may be listened on.',
    ),
    connectionsMax: integer(
      { unit: 'connections', default: 10_000, least: 1, most: 1_000_000 },
      'Open connections; further ones are closed at once.',
    ),
    headersTimeoutMs: integer(
      { unit: 'ms', default: 15_000, least: 100, most: 600_000 },
      'Time for the request line and header section to arrive; then 408.',
    ),
    contentTimeoutMs: integer(
      { unit: 'ms', default: 30_000, least: 100, most: 3_600_000 },
      'Time for the content of a request to arrive once it is read; then 408.',
    ),
    contentGraceMs: integer(
      { unit: 'ms', default: 5000, least: 100, most: 600_000 },
      'Time after which content must have come at `contentBytesPerSecondMin` on average; else 408.',
    ),
    contentBytesPerSecondMin: integer(
      { unit: 'bytes/s', default: 500, least: 0, most: MiB },
      'Least average rate of content once `contentGraceMs` is over.',
    ),
    requestTimeoutMs: integer(
      { unit: 'ms', default: 60_000, least: 100, most: 3_600_000 },
      'Time for a whole request to arrive; then 408.',
    ),
    keepAliveTimeoutMs: integer(
      { unit: 'ms', default: 65_000, least: 1, most: 3_600_000 },
      'Time that a connection may stay idle between two requests.',
    ),
    pipelinedRequestsMax: integer(
      { unit: 'requests', default: 100, least: 1, most: 10_000 },
      'Requests of one connection that may wait for their answers; it closes after the last of them.',
    ),
    answerStallTimeoutMs: integer(
      { unit: 'ms', default: 30_000, least: 100, most: 3_600_000 },
      'Time that a client may take nothing of its answer before the connection is cut.',
    ),
    drainMs: integer(
      { unit: 'ms', default: 10_000, least: 0, most: 600_000 },
      'Time for requests under way to end after SIGTERM or SIGINT; what is left is cut off.',
    ),
    drainIdleMs: integer(
      { unit: 'ms', default: 250, least: 0, most: 60_000 },
      'While draining, a connection that was answered less than this long ago stays open for one more request.',
    ),
    streamsMax: integer(
      { unit: 'streams', default: 1000, least: 0, most: 1_000_000 },
      'Open event streams; further ones are answered 503.',
    ),
    streamBufferBytesMax: integer(
      { unit: 'bytes', default: 256 * KiB, least: 4 * KiB, most: 64 * MiB },
      'What may wait for the slow reader of an event stream, who is then cut off and can resume.',
    ),
    streamHeartbeatMs: integer(
      { unit: 'ms', default: 15_000, least: 100, most: 600_000 },
      'Time between two comments on an event stream that has nothing to say.',
    ),
  }),

  ...section('Requests', {
    targetBytesMax: integer(
      { unit: 'bytes', default: 8000, least: 256, most: 64 * KiB },
      'Length of a request target; then 414. Longer queries go into the content of a QUERY.',
    ),
    fieldsBytesMax: integer(
      { unit: 'bytes', default: 16 * KiB, least: KiB, most: MiB },
      'Length of the request line and header section together; then 431.',
    ),
    bodyBytesMax: integer(
      { unit: 'bytes', default: MiB, least: KiB, most: 256 * MiB },
      'Length of request content as it is transferred; then 413.',
    ),
    decodedBytesMax: integer(
      { unit: 'bytes', default: MiB, least: KiB, most: 256 * MiB },
      'Length of request content once its content codings are undone; then 413.',
    ),
    documentCharactersMax: integer(
      { unit: 'characters', default: 2 * MiB, least: KiB, most: 256 * MiB },
      'Length that the representation of a resource may grow to by patches; then 413.',
    ),
    unreadContentBytesMax: integer(
      { unit: 'bytes', default: 64 * KiB, least: 0, most: 16 * MiB },
      'Content that is read and thrown away after an early answer, so that the client sees the answer.',
    ),
    unreadContentTimeoutMs: integer(
      { unit: 'ms', default: 2000, least: 0, most: 60_000 },
      'Time that such content is waited for before the connection is cut.',
    ),
    jsonDepthMax: integer(
      { unit: 'levels', default: 64, least: 4, most: 1000 },
      'Nesting of arrays and objects in JSON content; then 400.',
    ),
    jsonMembersMax: integer(
      { unit: 'members', default: 10_000, least: 16, most: 10_000_000 },
      'Members of one object in JSON content; then 400.',
    ),
    formFieldsMax: integer(
      { unit: 'fields', default: 1000, least: 1, most: 100_000 },
      'Fields of a form, urlencoded or multipart; then 400.',
    ),
    multipartFieldBytesMax: integer(
      { unit: 'bytes', default: MiB, least: 64, most: 256 * MiB },
      'Length of one field of a multipart form; then 413.',
    ),
    multipartHeaderPairsMax: integer(
      { unit: 'fields', default: 16, least: 1, most: 1000 },
      'Header fields of one part of a multipart form; then 400.',
    ),
    multipartHeaderBytesMax: integer(
      { unit: 'bytes', default: 8 * KiB, least: 64, most: MiB },
      'Length of the header section of one part of a multipart form; then 400.',
    ),
    patchOperationsMax: integer(
      { unit: 'operations', default: 1000, least: 1, most: 100_000 },
      'Operations of a JSON Patch; then 400.',
    ),
    validationErrorsMax: integer(
      { unit: 'errors', default: 20, least: 1, most: 1000 },
      'Entries of `errors` in one answer; further ones are left out.',
    ),
    bulkDeleteIdsMax: integer(
      { unit: 'ids', default: 1000, least: 1, most: 100_000 },
      'Entries of `ids` in a bulk deletion; then 422.',
    ),
    idempotencySeconds: integer(
      { unit: 'seconds', default: dayS, least: 1, most: 30 * dayS },
      'Time that the answer to a request with an Idempotency-Key is kept for replay.',
    ),
    operationSeconds: integer(
      { unit: 'seconds', default: dayS, least: 1, most: 30 * dayS },
      'Time that the outcome of a request with `Prefer: respond-async` is kept.',
    ),
    compressionBytesMin: integer(
      { unit: 'bytes', default: KiB, least: 0, most: 256 * MiB },
      'Length from which a representation is compressed for clients that accept it.',
    ),
    traceMethod: toggle('Answers TRACE instead of refusing it (§4.11).'),
    corsOrigins: text(
      '',
      { refuse: refuseOrigins },
      'Comma-separated origins that browsers may call from, or `*` for any; empty for none.',
    ),
    corsMaxAgeSeconds: integer(
      { unit: 'seconds', default: dayS, least: 0, most: dayS },
      'Time that a browser may keep the answer to a preflight request.',
    ),
  }),

  ...section('Lists and queries', {
    listLimitDefault: integer(
      { unit: 'items', default: 20, least: 1, most: 10_000 },
      'Items on a page when the request names no `limit`.',
    ),
    listLimitMax: integer(
      { unit: 'items', default: 1000, least: 1, most: 10_000 },
      'Greatest `limit` that a request may name; then 400.',
    ),
    filterDepthMax: integer(
      { unit: 'levels', default: 16, least: 1, most: 64 },
      'Nesting of `and`, `or` and `not` in a filter.',
    ),
    filterNodesMax: integer(
      { unit: 'nodes', default: 256, least: 1, most: 10_000 },
      'Comparisons and connectives in a filter.',
    ),
    inValuesMax: integer(
      { unit: 'values', default: 1000, least: 1, most: 10_000 },
      'Values that one `in` may list.',
    ),
    searchTermsMax: integer({ unit: 'terms', default: 8, least: 1, most: 64 }, 'Words that `q` may hold.'),
    sqlCharactersMax: integer(
      { unit: 'characters', default: 8192, least: 64, most: 64 * KiB },
      'Length of a QUERY in SQL.',
    ),
    storedQuerySeconds: integer(
      { unit: 'seconds', default: dayS, least: 1, most: 365 * dayS },
      'Time that the `Location` of a QUERY repeats it.',
    ),
    resultCacheBytesMax: integer(
      { unit: 'bytes', default: 16 * MiB, least: 0, most: 4096 * MiB },
      'Memory for results of lists and queries, each kept until its collection changes; 0 keeps none.',
    ),
    planCacheEntriesMax: integer(
      { unit: 'plans', default: 2048, least: 1, most: 100_000 },
      'Compiled queries kept for the next request that asks the same.',
    ),
  }),

  ...section('Store', {
    readerThreads: integer(
      { unit: 'threads', default: 1, least: 1, most: 64 },
      'Threads for reads whose cost grows with the collection.',
    ),
    readerQueueMax: integer(
      { unit: 'reads', default: 256, least: 1, most: 100_000 },
      'Such reads that may wait for a thread; then 503.',
    ),
    scanTimeoutMs: integer(
      { unit: 'ms', default: 10_000, least: 10, most: 600_000 },
      'Time that one such read may take; then 503.',
    ),
    unitsWaitingMax: integer(
      { unit: 'units', default: 10_000, least: 1, most: 1_000_000 },
      'Writes that may wait to be committed; then 503.',
    ),
    unitsPerTransactionMax: integer(
      { unit: 'units', default: 512, least: 1, most: 100_000 },
      'Writes that one transaction commits together.',
    ),
    charactersPerTransactionMax: integer(
      { unit: 'characters', default: 8 * MiB, least: KiB, most: 1024 * MiB },
      'Length of documents after which a transaction takes no further write.',
    ),
    cacheKibibytes: integer(
      { unit: 'KiB', default: 16 * KiB, least: 64, most: 16 * MiB },
      'Page cache of each connection to the database.',
    ),
    commitRetriesMax: integer(
      { unit: 'retries', default: 64, least: 0, most: 10_000 },
      'How often a change without precondition that lost a race is computed again; then 503.',
    ),
    eventRetentionSeconds: integer(
      { unit: 'seconds', default: 30 * dayS, least: 60, most: 3650 * dayS },
      'Time that events are kept, hence how far back an event stream can resume.',
    ),
  }),
};

export type SettingName = keyof typeof settings;

/** The value of every setting, checked. */
export type Settings = { readonly [N in SettingName]: ValueOf<(typeof settings)[N]> };

/** Values given in code or in the configuration; each is checked like an environment variable. */
export type SettingOverrides = { readonly [N in SettingName]?: Settings[N] | undefined };

/** The environment variable of a setting: `bodyBytesMax` is `COMITY_BODY_BYTES_MAX`. */
export function variableOf(name: string): string {
  let variable = 'COMITY_';
  for (const character of name) {
    const upper = character.toUpperCase();
    variable += character === upper ? `_${upper}` : upper;
  }
  return variable;
}

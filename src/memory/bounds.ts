/**
 * The bound of every cache, map and counter that outlives a request and whose keys a client can choose. The code takes
 * its bounds from here, docs/reference/limits.md is generated from it, and scripts/checks/bounds.ts finds collections
 * without an entry. State of requests under way, and maps keyed by the declaration, are listed in
 * scripts/bound-allowances.ts.
 *
 * A bound is a number of octets, a setting in octets, or a number of entries of a fixed size.
 */

export type MemoryBound = {
  /** The file, and the name of the map or cache in it. */
  readonly file: string;
  readonly name: string;
  readonly holds: string;
  readonly chosenBy: string;
  readonly atBound: string;
  readonly octets?: number;
  /** The setting that is the bound: in octets, or in entries where `entryOctets` is given. */
  readonly setting?: string;
  readonly entries?: number;
  readonly entryOctets?: number;
  /** The factor of the setting. Default: 1. */
  readonly part?: number;
  /** The scope of one such bound. Default: one for the process. */
  readonly each?: string;
};

const KiB = 1024;
const MiB = 1024 * KiB;

const dropped = 'Comity drops the less recently used half';
const oldestGoes = 'Comity drops the oldest entry';

export const memoryBounds = {
  preparedQueries: {
    file: 'src/resources/collection/listing.ts',
    name: 'prepared',
    holds: 'compiled lists and QUERYs, by their text',
    chosenBy: 'callers who may list',
    setting: 'planCacheBytesMax',
    part: 1 / 2,
    each: 'all collections share one',
    atBound: dropped,
  },
  plans: {
    file: 'src/resources/collection/listing.ts',
    name: 'plans',
    holds: 'query plans of the store, by query and audience',
    chosenBy: 'callers who may list',
    setting: 'planCacheBytesMax',
    part: 1 / 2,
    each: 'all collections share one',
    atBound: dropped,
  },
  pages: {
    file: 'src/resources/collection/listing.ts',
    name: 'pages',
    holds: 'response content of pages, each until its collection changes',
    chosenBy: 'callers who may list',
    setting: 'resultCacheBytesMax',
    atBound: dropped,
  },
  keptAnswers: {
    file: 'src/kernel/kept-answers.ts',
    name: '#answers',
    holds: 'answers to reads by id that came more than once, each until its row changes',
    chosenBy: 'callers who may read',
    octets: 16 * MiB,
    atBound: dropped,
  },
  eventBatches: {
    file: 'src/resources/events/shared-batches.ts',
    name: 'kept',
    holds: 'serialized events for event streams, until the log changes',
    chosenBy: 'callers who may read events',
    octets: 16 * MiB,
    atBound: dropped,
  },
  sqliteShapes: {
    file: 'src/store/sqlite/sqlite-query.ts',
    name: 'createCompiledShapes',
    holds: 'SQL of queries, by shape',
    chosenBy: 'callers who may list',
    octets: 8 * MiB,
    atBound: dropped,
  },
  postgresShapes: {
    file: 'src/store/postgres/read/postgres-query.ts',
    name: 'createCompiledShapes',
    holds: 'SQL of queries, by shape',
    chosenBy: 'callers who may list',
    octets: 8 * MiB,
    atBound: dropped,
  },
  sqliteStatements: {
    file: 'src/store/sqlite/statement-cache.ts',
    name: '#statements',
    holds: 'prepared statements of the thread that answers requests',
    chosenBy: 'callers who may list',
    octets: 16 * MiB,
    each: 'in addition a quarter of it for each thread of `readerThreads`',
    atBound: dropped,
  },
  sqliteRows: {
    file: 'src/store/sqlite/kept-rows.ts',
    name: '#rows',
    holds: 'rows that were read by id, each until it changes',
    chosenBy: 'callers who may read',
    octets: 32 * MiB,
    atBound: dropped,
  },
  likeMatchers: {
    file: 'src/store/sqlite/reader/deadline.ts',
    name: 'matchers',
    holds: 'compiled patterns of `like`',
    chosenBy: 'callers who may list',
    octets: 4 * MiB,
    each: 'one for each thread of `readerThreads`',
    atBound: dropped,
  },
  postgresStatements: {
    file: 'src/store/postgres/connection/statement-names.ts',
    name: '#bySql',
    holds: 'texts of prepared statements, which PostgreSQL also keeps',
    chosenBy: 'callers who may list',
    octets: 4 * MiB,
    each: 'one for each connection to the database; at most 256 statements',
    atBound: 'Comity closes the least recently used statement',
  },
  credentials: {
    file: 'src/accounts/verified-credentials.ts',
    name: '#remembered',
    holds: 'verified credentials',
    chosenBy: 'callers with a valid credential',
    setting: 'verifiedCredentialsBytesMax',
    part: 7 / 8,
    atBound: `${dropped}; dropped credentials are verified again`,
  },
  credentialNames: {
    file: 'src/accounts/verified-credentials.ts',
    name: '#names',
    holds: 'users of verified passwords',
    chosenBy: 'callers with a valid password',
    setting: 'verifiedCredentialsBytesMax',
    part: 1 / 8,
    atBound: dropped,
  },
  storedTokens: {
    file: 'src/resources/queries/stored-queries.ts',
    name: 'storedAt',
    holds: 'tokens of stored queries',
    chosenBy: 'callers who may list',
    octets: MiB,
    atBound: dropped,
  },
  rateCounters: {
    file: 'src/kernel/rate-limit/meter.ts',
    name: '#current',
    holds: 'numbers of requests in this minute, by principal and address',
    chosenBy: 'any client, by its address',
    setting: 'rateLimitKeysMax',
    entryOctets: 256,
    part: 4,
    each: 'reads and writes, of principals and of addresses, are counted separately',
    atBound: 'a caller with few requests is replaced, or new callers share one counter',
  },
  rateCountersBefore: {
    file: 'src/kernel/rate-limit/meter.ts',
    name: '#previous',
    holds: 'numbers of requests in the previous minute, by principal and address',
    chosenBy: 'any client, by its address',
    setting: 'rateLimitKeysMax',
    entryOctets: 256,
    part: 4,
    each: 'reads and writes, of principals and of addresses, are counted separately',
    atBound: 'as for the current minute',
  },
  tallies: {
    file: 'src/store/sqlite/tallies.ts',
    name: 'counters',
    holds: 'counters of sign-ins, mail and stored queries, in the embedded store',
    chosenBy: 'any client, by account and address',
    entries: 131_072,
    entryOctets: 256,
    atBound: 'Comity drops the counters with the lowest counts',
  },
  callerAddresses: {
    file: 'src/kernel/rate-limit/caller-address.ts',
    name: 'prefixes',
    holds: 'addresses, shortened to the prefix that limits count',
    chosenBy: 'any client, by its address',
    entries: 1024,
    entryOctets: 256,
    each: 'one for each limit that counts addresses',
    atBound: 'Comity drops all entries',
  },
  realtimeAttempts: {
    file: 'src/realtime/identify.ts',
    name: 'fullAt',
    holds: 'attempts to open a WebSocket that are left, by caller',
    chosenBy: 'any client, by its address',
    entries: 65_536,
    entryOctets: 192,
    atBound: oldestGoes,
  },
  unsettledKeys: {
    file: 'src/kernel/idempotency.ts',
    name: '#waiting',
    holds: 'Idempotency-Keys whose outcome is not stored yet',
    chosenBy: 'callers who write while the store does not respond',
    entries: 10_000,
    entryOctets: KiB,
    atBound: 'the record of the key expires by its age',
  },
  operations: {
    file: 'src/kernel/operations/operations.ts',
    name: '#underWay',
    holds: 'asynchronous requests that are carried out',
    chosenBy: 'callers who prefer `respond-async`',
    octets: 64 * MiB,
    atBound: '503 with Retry-After',
  },
  views: {
    file: 'src/resources/collection/view.ts',
    name: 'known',
    holds: 'visible fields of a collection that hides some, by audience',
    chosenBy: 'callers with a valid credential',
    entries: 256,
    entryOctets: 8 * KiB,
    each: 'one for each collection with `hidden`',
    atBound: oldestGoes,
  },
  ruleConditions: {
    file: 'src/model/access-function.ts',
    name: 'known',
    holds: 'conditions that an access function returned, by audience',
    chosenBy: 'callers with a valid credential',
    entries: 1000,
    entryOctets: 8 * KiB,
    each: 'one for each access function of the declaration',
    atBound: oldestGoes,
  },
  provisionalRevisions: {
    file: 'src/store/provisional-revisions.ts',
    name: '#units',
    holds: 'revisions of changes from which other changes of the same row were computed',
    chosenBy: 'clients that change one row at the same time',
    entries: 10_000,
    entryOctets: 100,
    atBound: oldestGoes,
  },
  httpDates: {
    file: 'src/http/syntax/http-date.ts',
    name: 'texts',
    holds: 'formatted HTTP dates, by second',
    chosenBy: 'callers who write, by the time of their writes',
    entries: 1024,
    entryOctets: 128,
    atBound: oldestGoes,
  },
  sentEvents: {
    file: 'src/webhooks/sending/sent-event.ts',
    name: 'kept',
    holds: 'content of events that are sent to many endpoints',
    chosenBy: 'callers who write',
    octets: 16 * MiB,
    atBound: dropped,
  },
  ownEvents: {
    file: 'src/webhooks/sending/wakes.ts',
    name: 'ownEvents',
    holds: 'ids of events whose deliveries this process announces itself',
    chosenBy: 'callers who write',
    octets: 1 * MiB,
    atBound: dropped,
  },
  askedDeliveries: {
    file: 'src/webhooks/sending/endpoint-queue.ts',
    name: 'asked',
    holds: 'resends and tests that wait for their attempt',
    chosenBy: 'owners of endpoints',
    entries: 1024,
    entryOctets: 128,
    each: 'one for each endpoint',
    atBound: 'further ones wait in the store',
  },
  eventCandidates: {
    file: 'src/webhooks/sending/fan-out/matcher.ts',
    name: 'kept',
    holds: 'endpoints whose patterns match an event type, by type',
    chosenBy: 'callers who may post events',
    entries: 1_000_000,
    entryOctets: 16,
    atBound: 'Comity drops all entries and matches again',
  },
  origins: {
    file: 'src/egress/exchanges.ts',
    name: '#origins',
    holds: 'connections to receivers of webhooks and to providers',
    chosenBy: 'owners of endpoints',
    setting: 'egressOriginsMax',
    entryOctets: 32 * KiB,
    atBound: 'Comity closes the connections of the least recently used origin',
  },
  slowNames: {
    file: 'src/egress/resolve.ts',
    name: 'slowNames',
    holds: 'host names whose last lookup was slow',
    chosenBy: 'owners of endpoints',
    entries: 4096,
    entryOctets: 640,
    atBound: oldestGoes,
  },
  tunnelLedgers: {
    file: 'src/tunnel/budget.ts',
    name: 'ledgers',
    holds: 'octets in tunnels today, by principal',
    chosenBy: 'callers who may open tunnels',
    entries: 16_384,
    entryOctets: KiB,
    atBound: 'Comity drops the oldest entry without an open tunnel',
  },
  keyUses: {
    file: 'src/accounts/keys/key-uses.ts',
    name: 'waiting',
    holds: 'uses of API keys that are not stored yet',
    chosenBy: 'callers with a valid key',
    entries: 10_000,
    entryOctets: 192,
    atBound: 'Comity stores the next use instead',
  },
  suspects: {
    file: 'src/logic/threads/handler-threads.ts',
    name: '#suspects',
    holds: 'messages whose handler ended its thread',
    chosenBy: 'senders with a valid signature',
    entries: 10_000,
    entryOctets: 192,
    atBound: oldestGoes,
  },
  dedupeKeys: {
    file: 'src/webhooks/receive/message-store.ts',
    name: 'known',
    holds: 'keys of messages that `memoryStore` of `comity/webhooks` has received',
    chosenBy: 'senders with a valid signature',
    entries: 10_000,
    entryOctets: KiB,
    each: 'one for each `memoryStore`; `max` sets the number of entries',
    atBound: oldestGoes,
  },
} as const satisfies Readonly<Record<string, MemoryBound>>;

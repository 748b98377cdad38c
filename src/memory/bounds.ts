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

const dropped = 'the half used less recently is dropped';
const oldestGoes = 'the oldest entry is dropped';

export const memoryBounds = {
  preparedQueries: {
    file: 'src/resources/collection/listing.ts',
    name: 'prepared',
    holds: 'what the text of a list or QUERY compiled to',
    chosenBy: 'anyone who may list',
    setting: 'planCacheBytesMax',
    part: 1 / 2,
    each: 'all collections together',
    atBound: dropped,
  },
  plans: {
    file: 'src/resources/collection/listing.ts',
    name: 'plans',
    holds: 'plans of the store, by query and audience',
    chosenBy: 'anyone who may list',
    setting: 'planCacheBytesMax',
    part: 1 / 2,
    each: 'all collections together',
    atBound: dropped,
  },
  pages: {
    file: 'src/resources/collection/listing.ts',
    name: 'pages',
    holds: 'finished pages, each until its collection changes',
    chosenBy: 'anyone who may list',
    setting: 'resultCacheBytesMax',
    atBound: dropped,
  },
  eventBatches: {
    file: 'src/resources/events/shared-batches.ts',
    name: 'kept',
    holds: 'events as event streams send them, until the log changes',
    chosenBy: 'anyone who may read events',
    octets: 16 * MiB,
    atBound: dropped,
  },
  sqliteShapes: {
    file: 'src/store/sqlite/sqlite-query.ts',
    name: 'createCompiledShapes',
    holds: 'SQL of queries, by shape',
    chosenBy: 'anyone who may list',
    octets: 8 * MiB,
    atBound: dropped,
  },
  postgresShapes: {
    file: 'src/store/postgres/read/postgres-query.ts',
    name: 'createCompiledShapes',
    holds: 'SQL of queries, by shape',
    chosenBy: 'anyone who may list',
    octets: 8 * MiB,
    atBound: dropped,
  },
  sqliteStatements: {
    file: 'src/store/sqlite/statement-cache.ts',
    name: '#statements',
    holds: 'prepared statements of the thread that answers requests',
    chosenBy: 'anyone who may list',
    octets: 16 * MiB,
    each: 'a quarter of it for each thread of `readerThreads` besides',
    atBound: dropped,
  },
  likeMatchers: {
    file: 'src/store/sqlite/reader/deadline.ts',
    name: 'matchers',
    holds: 'patterns of `like`, compiled',
    chosenBy: 'anyone who may list',
    octets: 4 * MiB,
    each: 'each thread of `readerThreads`',
    atBound: dropped,
  },
  postgresStatements: {
    file: 'src/store/postgres/connection/statement-names.ts',
    name: '#bySql',
    holds: 'texts of prepared statements, which the server keeps as well',
    chosenBy: 'anyone who may list',
    octets: 4 * MiB,
    each: 'each connection to the database; at most 256 statements',
    atBound: 'the statement used least recently is closed',
  },
  credentials: {
    file: 'src/accounts/verified-credentials.ts',
    name: '#remembered',
    holds: 'verified credentials',
    chosenBy: 'callers with a valid credential',
    setting: 'verifiedCredentialsBytesMax',
    part: 7 / 8,
    atBound: `${dropped} and verified anew`,
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
    holds: 'tokens of queries that are known to be stored',
    chosenBy: 'anyone who may list',
    octets: MiB,
    atBound: dropped,
  },
  rateCounters: {
    file: 'src/kernel/rate-limit/meter.ts',
    name: '#current',
    holds: 'requests of each principal and address in this minute',
    chosenBy: 'anyone, by addresses',
    setting: 'rateLimitKeysMax',
    entryOctets: 256,
    part: 4,
    each: 'reads and writes, of principals and of addresses, each for itself',
    atBound: 'a caller that asked little makes room, or new ones share one counter',
  },
  rateCountersBefore: {
    file: 'src/kernel/rate-limit/meter.ts',
    name: '#previous',
    holds: 'the same of the minute before',
    chosenBy: 'anyone, by addresses',
    setting: 'rateLimitKeysMax',
    entryOctets: 256,
    part: 4,
    each: 'reads and writes, of principals and of addresses, each for itself',
    atBound: 'as above',
  },
  tallies: {
    file: 'src/store/sqlite/tallies.ts',
    name: 'counters',
    holds: 'counters of sign-ins, mail and stored queries, in the embedded store',
    chosenBy: 'anyone, by accounts and addresses',
    entries: 131_072,
    entryOctets: 256,
    atBound: 'the counters with the least counts are dropped',
  },
  callerAddresses: {
    file: 'src/kernel/rate-limit/caller-address.ts',
    name: 'prefixes',
    holds: 'addresses as limits count them',
    chosenBy: 'anyone, by addresses',
    entries: 1024,
    entryOctets: 256,
    each: 'each limit that counts addresses',
    atBound: 'all are dropped',
  },
  realtimeAttempts: {
    file: 'src/realtime/identify.ts',
    name: 'fullAt',
    holds: 'how many WebSockets each caller may try to open at once',
    chosenBy: 'anyone, by addresses',
    entries: 65_536,
    entryOctets: 192,
    atBound: oldestGoes,
  },
  unsettledKeys: {
    file: 'src/kernel/idempotency.ts',
    name: '#waiting',
    holds: 'Idempotency-Keys whose record could not be written yet',
    chosenBy: 'callers who write while the store is away',
    entries: 10_000,
    entryOctets: KiB,
    atBound: 'the key is left to its age',
  },
  operations: {
    file: 'src/kernel/operations/operations.ts',
    name: '#underWay',
    holds: 'requests accepted with 202 that are being carried out',
    chosenBy: 'callers who prefer `respond-async`',
    octets: 64 * MiB,
    atBound: '503 with Retry-After',
  },
  views: {
    file: 'src/resources/collection/view.ts',
    name: 'known',
    holds: 'which fields each audience sees of a collection that hides some',
    chosenBy: 'callers with a valid credential',
    entries: 256,
    entryOctets: 8 * KiB,
    each: 'each collection with `hidden`',
    atBound: oldestGoes,
  },
  ruleConditions: {
    file: 'src/model/access-function.ts',
    name: 'known',
    holds: 'conditions that an access function gave, by audience',
    chosenBy: 'callers with a valid credential',
    entries: 1000,
    entryOctets: 8 * KiB,
    each: 'each access function of the declaration',
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
    holds: 'dates as fields write them, by the second',
    chosenBy: 'writers, by the time of their writes',
    entries: 1024,
    entryOctets: 128,
    atBound: oldestGoes,
  },
  sentEvents: {
    file: 'src/webhooks/sending/sent-event.ts',
    name: 'kept',
    holds: 'events that are being sent to many endpoints',
    chosenBy: 'writers',
    octets: 16 * MiB,
    atBound: dropped,
  },
  askedDeliveries: {
    file: 'src/webhooks/sending/endpoint-queue.ts',
    name: 'asked',
    holds: 'resends and tests that wait to be sent',
    chosenBy: 'owners of endpoints',
    entries: 1024,
    entryOctets: 128,
    each: 'each endpoint',
    atBound: 'a further one is read from the store in its turn',
  },
  eventCandidates: {
    file: 'src/webhooks/sending/fan-out/matcher.ts',
    name: 'kept',
    holds: 'endpoints that may want an event, by type of event',
    chosenBy: 'callers who may post events',
    entries: 1_000_000,
    entryOctets: 16,
    atBound: 'all are found again',
  },
  origins: {
    file: 'src/egress/exchanges.ts',
    name: '#origins',
    holds: 'connections to receivers of webhooks and providers',
    chosenBy: 'owners of endpoints',
    setting: 'egressOriginsMax',
    entryOctets: 32 * KiB,
    atBound: 'the origin used least recently is closed',
  },
  slowNames: {
    file: 'src/egress/resolve.ts',
    name: 'slowNames',
    holds: 'names whose last lookup was slow',
    chosenBy: 'owners of endpoints',
    entries: 4096,
    entryOctets: 640,
    atBound: oldestGoes,
  },
  tunnelLedgers: {
    file: 'src/tunnel/budget.ts',
    name: 'ledgers',
    holds: 'octets that each principal passed through tunnels today',
    chosenBy: 'callers who may open tunnels',
    entries: 16_384,
    entryOctets: KiB,
    atBound: 'the oldest that has no tunnel open is dropped',
  },
  keyUses: {
    file: 'src/accounts/keys/key-uses.ts',
    name: 'waiting',
    holds: 'uses of API keys that are not noted yet',
    chosenBy: 'callers with a valid key',
    entries: 10_000,
    entryOctets: 192,
    atBound: 'the use is noted next time',
  },
  suspects: {
    file: 'src/webhooks/receiving/handler-threads/handler-threads.ts',
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
    holds: 'messages that `memoryStore` of `comity/webhooks` has seen',
    chosenBy: 'senders with a valid signature',
    entries: 10_000,
    entryOctets: KiB,
    each: 'each `memoryStore`; `max` sets the number',
    atBound: oldestGoes,
  },
} as const satisfies Readonly<Record<string, MemoryBound>>;

/**
 * Names that a collection or a field cannot or should not have, because they have another meaning in the same place. Names of planned
 * built-in resources are reserved too, so that an upgrade does not replace a collection.
 */

/** First path segments of built-in resources and pages below the base, in lower case; test/config/reserved-names.test.ts compares them. */
export const reservedPaths: ReadonlySet<string> = new Set([
  'admin',
  'audit',
  'auth',
  'batch',
  'dashboard',
  'deliveries',
  'docs',
  'endpoints',
  'event-types',
  'events',
  'files',
  'health',
  'hold',
  'jobs',
  'keys',
  'mails',
  'meta',
  'metrics',
  'openapi',
  'operations',
  'portal',
  'portal-links',
  'portal-sessions',
  'queries',
  'realtime',
  'received',
  'recoveries',
  'results',
  'senders',
  'subscribers',
  'uploads',
  'users',
  'views',
  'webhooks',
  'well-known',
]);

/** Names that no collection can have: paths, and tables of the program, in lower case. */
export const reservedCollections: ReadonlySet<string> = new Set([
  ...reservedPaths,
  ...['attempts', 'identities', 'passwords', 'sessions'],
]);

/** First path segments outside the base that the program itself serves. */
export const reservedBases: ReadonlySet<string> = new Set([
  '.well-known',
  'dashboard',
  'docs',
  'health',
  'metrics',
  'openapi.json',
  'portal',
]);

/** Members that the server sets (§2.1); clients never write them. */
export const madeMembers: ReadonlySet<string> = new Set(['id', 'createdAt', 'updatedAt', 'deletedAt']);

/** Parameters of every list and QUERY form; a field of that name is filtered as `name[eq]=`. */
export const queryParameters: ReadonlySet<string> = new Set([
  'api_key',
  'counts',
  'cursor',
  'expand',
  'fields',
  'limit',
  'order',
  'page',
  'per_page',
  'q',
  'sort',
]);

export const filterConnectives: ReadonlySet<string> = new Set(['and', 'or', 'not']);

/** Members of every error body, plain or RFC 9457, which counts beside them cannot use. */
export const problemMembers: ReadonlySet<string> = new Set([
  'code',
  'detail',
  'error',
  'errors',
  'instance',
  'status',
  'title',
  'type',
]);

/**
 * Header fields, in lower case, that nothing may add to outgoing messages: those that frame the message, belong to the connection (RFC 9110
 * §7.6.1), or identify the sender to a receiver (§5.6).
 */
export const reservedHeaderNames: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'trailer', 'te', 'expect', 'upgrade', 'http2-settings'],
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate'],
  ...['content-type', 'content-encoding', 'accept-encoding', 'user-agent', 'date'],
  ...['service-signature', 'x-hub-signature-256', 'x-hub-signature-256-previous'],
  ...['x-service-event', 'x-service-delivery'],
  ...['webhook-id', 'webhook-timestamp', 'webhook-signature'],
]);

/** Names below the path of every collection that the program itself serves (§4.1), which no document can have as its id. */
export const collectionPaths: readonly string[] = ['bulk', 'bulk-delete', 'import'];

/**
 * Names that a collection or a field cannot have, or had better not: each already means something at the place where
 * it would stand. Names of later built-in resources are held back now, so that an upgrade takes no collection away.
 */

/** Names of built-in resources and pages (design §4), in lower case. */
export const reservedCollections: ReadonlySet<string> = new Set([
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
  'health',
  'keys',
  'meta',
  'metrics',
  'openapi',
  'operations',
  'queries',
  'realtime',
  'received',
  'recoveries',
  'results',
  'senders',
  'users',
  'webhooks',
  'well-known',
]);

/** First path segments outside the base that the program itself answers. */
export const reservedBases: ReadonlySet<string> = new Set([
  '.well-known',
  'dashboard',
  'docs',
  'health',
  'metrics',
  'openapi.json',
]);

/** Members that the server makes (§2.1); a client never writes them. */
export const madeMembers: ReadonlySet<string> = new Set(['id', 'createdAt', 'updatedAt', 'deletedAt']);

/** Parameters of every list and QUERY form; a field of that name is filtered as `name[eq]=`. */
export const queryParameters: ReadonlySet<string> = new Set([
  'api_key',
  'cursor',
  'fields',
  'limit',
  'order',
  'page',
  'per_page',
  'q',
  'sort',
]);

/** Connectives of a JSON filter. */
export const filterConnectives: ReadonlySet<string> = new Set(['and', 'or', 'not']);

/** Members that every error body has, plain or as RFC 9457: a count beside them needs another name. */
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
 * Header fields, in lower case, that nobody adds to what is sent: what frames the message, what belongs to the connection (RFC 9110 §7.6.1), and what a
 * receiver believes of the sender (§5.6).
 */
export const reservedHeaderNames: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'trailer', 'te', 'expect', 'upgrade', 'http2-settings'],
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate'],
  ...['content-type', 'content-encoding', 'accept-encoding', 'user-agent', 'date'],
  ...['service-signature', 'x-hub-signature-256', 'x-hub-signature-256-previous'],
  ...['x-service-event', 'x-service-delivery'],
  ...['webhook-id', 'webhook-timestamp', 'webhook-signature'],
]);

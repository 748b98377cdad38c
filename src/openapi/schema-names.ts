/**
 * What a collection is called in schemas and operation ids: `order-lines` is `OrderLines`, one of them an `OrderLine`.
 */
import type { Collection } from '../model/collection.ts';

export type SchemaNames = {
  readonly singular: string;
  readonly plural: string;
  /** `an order line`, for sentences. */
  readonly one: string;
  /** `order lines` */
  readonly many: string;
};

/** Of the collections that the program brings itself. */
export const builtInNames = {
  users: { singular: 'User', plural: 'Users', one: 'an account', many: 'accounts' },
  keys: { singular: 'Key', plural: 'Keys', one: 'an API key', many: 'API keys' },
  audit: {
    singular: 'AuditEntry',
    plural: 'AuditEntries',
    one: 'an entry of the audit trail',
    many: 'entries of the audit trail',
  },
  endpoints: { singular: 'Endpoint', plural: 'Endpoints', one: 'an endpoint', many: 'endpoints' },
  deliveries: { singular: 'Delivery', plural: 'Deliveries', one: 'a delivery', many: 'deliveries' },
  received: {
    singular: 'ReceivedMessage',
    plural: 'ReceivedMessages',
    one: 'a received message',
    many: 'received messages',
  },
  recoveries: { singular: 'Recovery', plural: 'Recoveries', one: 'a recovery', many: 'recoveries' },
} as const satisfies Record<string, SchemaNames>;

/** Schemas and operations of the document's own; a collection that would take one of these names gets another. */
const taken: readonly string[] = [
  'Account',
  'Attempt',
  'Attempts',
  ...Object.values(builtInNames).flatMap(({ singular, plural }) => [singular, plural]),
  'EndpointRecovery',
  'EndpointTest',
  'Error',
  'Event',
  'EventExpunction',
  'EventLog',
  'EventPosting',
  'EventType',
  'EventTypes',
  'Health',
  'JsonPatch',
  'JwkSet',
  'KeyCreation',
  'KeyRotation',
  'Login',
  'Logout',
  'Me',
  'Metrics',
  'OpenApi',
  'Operation',
  'OperationResult',
  'Password',
  'PasswordChange',
  'PasswordReset',
  'PasswordResetConfirmation',
  'PasswordResetRequest',
  'PasswordSet',
  'ProblemDetails',
  'Query',
  'QueryResult',
  'ReceivedAttempt',
  'ReceivedAttempts',
  'ReceivedBody',
  'ReceivedReplay',
  'Refresh',
  'Registration',
  'Replay',
  'Resend',
  'SecretRotation',
  'Sender',
  'SenderSecretRotation',
  'Senders',
  'SignIn',
  'SignInCallback',
  'Tokens',
  'UserPassword',
  'Verification',
  'VerificationCode',
  'VerificationConfirmation',
  'VerificationRequest',
];

/** A pair of names for each collection, none given twice. */
export function schemaNames(collections: Iterable<Collection>): ReadonlyMap<string, SchemaNames> {
  const used = new Set(taken);
  const unused = (wanted: string) => {
    let name = wanted;
    for (let number = 2; used.has(name); number += 1) name = `${wanted}${number}`;
    used.add(name);
    return name;
  };
  const names = new Map<string, SchemaNames>();
  for (const { name } of collections) {
    const plural = unused(pascal(name));
    const only = singularOf(name);
    const singular = unused(only === name ? `${pascal(name)}Item` : pascal(only));
    names.set(name, { singular, plural, one: withArticle(words(only)), many: words(name) });
  }
  return names;
}

function pascal(name: string): string {
  return name
    .split(wordBoundary)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('');
}

function words(name: string): string {
  return name
    .split(wordBoundary)
    .join(' ')
    .replace(innerCapital, (letter) => ` ${letter.toLowerCase()}`);
}

function withArticle(noun: string): string {
  return `${startsWithVowel.test(noun) ? 'an' : 'a'} ${noun}`;
}

/** English plurals by rule, not by dictionary: a wrong guess is ugly, never ambiguous. */
function singularOf(plural: string): string {
  if (plural.endsWith('ies') && plural.length > 4) return `${plural.slice(0, -3)}y`;
  for (const ending of ['sses', 'shes', 'ches', 'xes', 'zes']) {
    if (plural.endsWith(ending)) return plural.slice(0, -2);
  }
  const kept = ['ss', 'us', 'is'].some((ending) => plural.endsWith(ending));
  return plural.endsWith('s') && !kept ? plural.slice(0, -1) : plural;
}

const wordBoundary = /[-_.]/;
const innerCapital = /(?<=.)[A-Z]/g;
const startsWithVowel = /^[aeiou]/i;

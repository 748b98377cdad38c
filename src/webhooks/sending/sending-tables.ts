/** What sending keeps: tables that no request reads and what their rows hold, the collections that are served, and for how long. */
import { Type } from 'typebox';
import { resolveBuiltIn } from '../../config/collections.ts';
import type { Settings } from '../../config/settings.ts';
import type { Access, Rule } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { deliveryStatuses } from '../../model/delivery.ts';
import { type EndpointSecret, endpointDefaults, modes, schemes } from '../../model/endpoint.ts';
import type { Scope } from '../../model/principal.ts';
import type { RetentionRule } from '../../store/retention.ts';

/**
 * Beside each endpoint, under the same id: what it is signed with, and what it may be told.
 * The texts of the secrets must be readable to sign: the rows are encrypted (store/secrets).
 */
export const endpointSecretsTable = 'endpoint_secrets';
export type EndpointSecrets = {
  /** The current one first. */
  readonly secrets: readonly EndpointSecret[];
  /** Scopes of the credential that made the endpoint: it is told nothing that one could not have read. */
  readonly scopes: readonly Scope[];
  readonly headers?: HeaderValues;
};

/** Values of the header fields of the endpoint (endpoint-headers.ts). */
export type HeaderValues = {
  /** The URL that the endpoint has with these values: together they are read from two tables. */
  readonly url: string;
  readonly values: Readonly<Record<string, string>>;
};

/**
 * Rows whose ids are numbers, of which the greatest is the generation of the endpoints: every change of what is sent where puts the next. A
 * unit that has found its endpoints expects the next one absent, so it is made anew when they changed meanwhile (fan-out/generation.ts).
 */
export const endpointGenerationTable = 'endpoint_generation';
/** Where changes of what is sent where wait for each other, and events for them. No row has this id. */
export const generationLine = { table: endpointGenerationTable, id: '' } as const;

/** Beside an endpoint that fails, under the same id: since when. Its row goes with the first success. */
export const endpointHealthTable = 'endpoint_health';
export type EndpointHealth = {
  /** Milliseconds since the epoch, of the first failure after the last success. */
  readonly failingSince: number;
  /** Attempts by schedule that failed since then. */
  readonly failures: number;
  /** When the owner was warned; null: not yet. */
  readonly warnedAt: number | null;
};

/** Attempts by `{delivery id}/{number from 1, six digits}`: those of one delivery are neighbours by id. */
export const attemptsTable = 'attempts';

/** Deliveries that a unit with many of them owes (fan-out/owed-deliveries.ts). A row goes when its deliveries are made. */
export const fanOutTable = 'fan_out_parts';

/** Tells other processes that an endpoint has something due that no event told them of. Rows last a minute. */
export const wakesTable = 'webhook_wakes';

/** Ed25519 keys of the signature version `v1a`. */
export const webhookKeysTable = 'webhook_keys';

/*
 * Collections, so that lists, QUERY, conditions and OPTIONS come to them as well. All of it belongs to the owner of the endpoint, for
 * credentials that bear the scope `webhooks`; administrators see everything.
 */

const own: Rule = { bearing: 'webhooks', rule: 'owner' };
const ownAccess: Access = {
  read: own,
  create: { bearing: 'webhooks', rule: 'principal' },
  update: own,
  delete: own,
};

const urlCharactersMax = 2048;
const patternsMax = 100;
const patternCharactersMax = 200;
const tenantCharactersMax = 200;
const time = Type.String({ format: 'date-time' });
const timeOrNull = Type.Union([time, Type.Null()]);

export const endpointsCollection: Collection = resolveBuiltIn('endpoints', {
  description:
    'Where events are sent. The secret is shown when it is made and when it is rotated, and never again. So is the value of a header field: `********` stands in its place, and keeps it when it is sent back. The deliveries of one that is deleted stay in the log, and are not tried again.',
  schema: Type.Object({
    url: Type.String({ minLength: 1, maxLength: urlCharactersMax }),
    description: Type.Optional(Type.String({ maxLength: 500 })),
    events: Type.Array(Type.String({ minLength: 1, maxLength: patternCharactersMax }), {
      minItems: 1,
      maxItems: patternsMax,
      uniqueItems: true,
    }),
    scheme: Type.Optional(
      Type.Union(
        schemes.map((name) => Type.Literal(name)),
        { default: endpointDefaults.scheme },
      ),
    ),
    mode: Type.Optional(Type.Union(modes.map((name) => Type.Literal(name)))),
    status: Type.Optional(
      Type.Union([Type.Literal('enabled'), Type.Literal('disabled')], { default: endpointDefaults.status }),
    ),
    disabledReason: Type.Optional(Type.Union([Type.Literal('gone'), Type.Literal('failing')])),
    tenant: Type.Optional(Type.String({ minLength: 1, maxLength: tenantCharactersMax })),
    headers: Type.Optional(Type.Record(Type.String(), Type.String())),
    maxInFlight: Type.Optional(Type.Integer({ minimum: 1, maximum: 1024 })),
    ratePerSecond: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 100_000 })),
    /** The key that it was made with. */
    madeBy: Type.Optional(Type.String()),
  }),
  access: ownAccess,
  // Nobody writes these; endpoints/revise.ts holds administrators to that, who pass every rule.
  readOnly: { disabledReason: 'administrator', madeBy: 'administrator' },
  search: ['url', 'description'],
  examples: [{ url: 'https://shop.example/hooks', events: ['products.*'], scheme: 'standard' }],
});

export const deliveriesCollection: Collection = resolveBuiltIn('deliveries', {
  description:
    'The log of what was sent to which endpoint, what became of it, and when it will be tried next.',
  schema: Type.Object({
    eventId: Type.String(),
    eventType: Type.String(),
    endpointId: Type.String(),
    status: Type.Union(deliveryStatuses.map((name) => Type.Literal(name))),
    attemptCount: Type.Integer(),
    scheduledAttemptCount: Type.Integer(),
    nextAttemptAt: timeOrNull,
    dueAt: timeOrNull,
    lastStatusCode: Type.Union([Type.Integer(), Type.Null()]),
    lastError: Type.Union([Type.String(), Type.Null()]),
  }),
  access: ownAccess,
  // The first is the queue of each endpoint. The second finds what an event led to.
  indexes: [['endpointId', 'dueAt'], 'eventId'],
  search: [],
});

export const recoveriesCollection: Collection = resolveBuiltIn('recoveries', {
  description: 'Requests to send again what an endpoint missed, and how far each has come.',
  schema: Type.Object({
    endpointId: Type.String(),
    since: time,
    until: time,
    /** Counts and sends nothing. */
    dryRun: Type.Boolean(),
    status: Type.Union([Type.Literal('running'), Type.Literal('finished'), Type.Literal('stopped')]),
    /** Events of the log that were looked at. */
    examined: Type.Integer(),
    /** Of those, events that the endpoint wants. */
    matching: Type.Integer(),
    /** Of those, deliveries that had failed and are tried again. */
    resent: Type.Integer(),
    /** Of those, events that had no delivery and have one now. */
    created: Type.Integer(),
    finishedAt: timeOrNull,
    /** While it runs: the last event that was looked at, and the last that will be, as places in the log. */
    logAfter: Type.Optional(Type.String()),
    logLast: Type.Optional(Type.String()),
    /** While it runs: the endpoint, which has one recovery at a time. */
    runningFor: Type.Optional(Type.String()),
  }),
  access: ownAccess,
  hidden: { logAfter: 'administrator', logLast: 'administrator', runningFor: 'administrator' },
  unique: ['runningFor'],
  indexes: ['endpointId', 'status'],
  search: [],
});

/*
 * Retention. Rows count from their last change; a payload is a row of the event log and has its own
 * setting. A delivery whose event is gone is concluded as expunged when it would be tried again.
 */

/** Other processes hear of a wake within seconds; later they look by themselves. */
const wakeSeconds = 60;
const recoverySeconds = 30 * 86_400;

export function sendingRetention({
  deliveryRetentionSeconds,
}: Pick<Settings, 'deliveryRetentionSeconds'>): readonly RetentionRule[] {
  return [
    { table: deliveriesCollection.name, seconds: deliveryRetentionSeconds },
    { table: attemptsTable, seconds: deliveryRetentionSeconds },
    { table: wakesTable, seconds: wakeSeconds },
    { table: recoveriesCollection.name, seconds: recoverySeconds },
  ];
}

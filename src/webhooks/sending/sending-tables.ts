/** The tables of sending: internal ones with the documents of their rows, served collections, and retention. */
import { Type } from 'typebox';
import { resolveBuiltIn } from '../../config/collections.ts';
import type { Settings } from '../../config/settings.ts';
import type { Access, Rule } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { deliveryStatuses } from '../../model/delivery.ts';
import {
  type EndpointSecret,
  endpointDefaults,
  modes,
  schemes,
  signatureVersions,
} from '../../model/endpoint.ts';
import type { Scope } from '../../model/principal.ts';
import type { RetentionRule } from '../../store/retention.ts';
import { templateCharactersMax } from './body-template.ts';

/**
 * A row beside each endpoint, with the same id: its secrets, scopes and header values. Signing needs the secrets in
 * clear, so these rows are encrypted (store/secrets).
 */
export const endpointSecretsTable = 'endpoint_secrets';
export type EndpointSecrets = {
  /** The current one first. */
  readonly secrets: readonly EndpointSecret[];
  /** Scopes of the credential that created the endpoint: it receives only what that credential could have read. */
  readonly scopes: readonly Scope[];
  /** The principal whose rights it has, if that is not its owner: who created an endpoint that belongs to a tenant. */
  readonly rightsOf?: string;
  readonly headers?: HeaderValues;
};

/** The id of the principal whose rights an endpoint has. */
export function rightsHolder(
  owner: string | null,
  { rightsOf }: Pick<EndpointSecrets, 'rightsOf'>,
): string | null {
  return rightsOf ?? owner;
}

/** Values of the endpoint's header fields (endpoints/revise-endpoint.ts). */
export type HeaderValues = {
  /** The endpoint's URL with these values, to detect a mismatch between the two tables. */
  readonly url: string;
  readonly values: Readonly<Record<string, string>>;
};

/**
 * One row, whose revision is the generation of the endpoints: every change of what is sent where writes it
 * (fan-out/generation.ts).
 */
export const endpointGenerationTable = 'endpoint_generation';
export const generationRow = { table: endpointGenerationTable, id: 'current' } as const;
/**
 * The line in which units that end the generation wait for each other, and events for them. It is not the line of the row, which a request
 * that holds its turn would take: its own commit would then wait for it.
 */
export const generationLine = { table: endpointGenerationTable, id: 'line' } as const;

/** A row beside a failing endpoint, with the same id. The first success removes it. */
export const endpointHealthTable = 'endpoint_health';
export type EndpointHealth = {
  /** Time of the first failure after the last success, in milliseconds since the epoch. */
  readonly failingSince: number;
  /** Scheduled attempts that failed since then. */
  readonly failures: number;
  /** When the owner was warned; null: not yet. */
  readonly warnedAt: number | null;
};

/** Attempts by `{delivery id}/{number from 1, six digits}`: those of one delivery are adjacent by id. */
export const attemptsTable = 'attempts';

/** The places of deliveries that are sent in their order (delivery-order.ts). */
export const deliveryLinesTable = 'delivery_lines';

/** Deliveries that a large unit owes (fan-out/owed-deliveries.ts). A row is removed when its deliveries are made. */
export const fanOutTable = 'fan_out_parts';
/** Deliveries in one unit: about 5 ms of the writer, and 2 ms of the event loop. */
export const deliveriesPerUnitMax = 256;

/** Announces due work without an event to other processes. Rows last a minute. */
export const wakesTable = 'webhook_wakes';

export const webhookKeysTable = 'webhook_keys';

/*
 * Served collections, with lists, QUERY, conditions and OPTIONS. Their rows belong to the owner of the endpoint, for
 * credentials with the scope `webhooks`; administrators see everything.
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
const orderByCharactersMax = 200;
const omittedMax = 100;
const omittedCharactersMax = 200;
const time = Type.String({ format: 'date-time' });
const timeOrNull = Type.Union([time, Type.Null()]);

export const endpointsCollection: Collection = resolveBuiltIn('endpoints', {
  description:
    'Webhook endpoints. Only the responses that create or rotate a secret show it. Values of header fields are write-only: responses show `********`, and a request with `********` keeps the stored value. The deliveries of a deleted endpoint stay in the log and are not retried.',
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
    signatures: Type.Optional(
      Type.Array(Type.Union(signatureVersions.map((name) => Type.Literal(name))), {
        minItems: 1,
        maxItems: signatureVersions.length,
        uniqueItems: true,
      }),
    ),
    status: Type.Optional(
      Type.Union([Type.Literal('enabled'), Type.Literal('disabled')], { default: endpointDefaults.status }),
    ),
    disabledReason: Type.Optional(Type.Union([Type.Literal('gone'), Type.Literal('failing')])),
    tenant: Type.Optional(Type.String({ minLength: 1, maxLength: tenantCharactersMax })),
    headers: Type.Optional(Type.Record(Type.String(), Type.String())),
    maxInFlight: Type.Optional(Type.Integer({ minimum: 1, maximum: 1024 })),
    ratePerSecond: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 100_000 })),
    where: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          'Only events whose `data.object` passes this filter, written as `filter` of a QUERY. It names members that the owner of the endpoint sees.',
      }),
    ),
    orderBy: Type.Optional(
      Type.String({
        minLength: 2,
        maxLength: orderByCharactersMax,
        description:
          'A JSON Pointer into `data.object`, such as `/id`: events with the same value there are sent in their order, one at a time.',
      }),
    ),
    omit: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: omittedCharactersMax }), {
        maxItems: omittedMax,
        uniqueItems: true,
        description: 'Members of `data.object` that are not sent.',
      }),
    ),
    template: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: templateCharactersMax,
        description:
          'The body in place of that of the scheme: `slack`, `discord` or `teams`, or JSON with placeholders such as `{{type}}` and `{{data.object.name}}`.',
      }),
    ),
    /** The API key that created it. */
    madeBy: Type.Optional(Type.String()),
  }),
  access: ownAccess,
  // No client may write these; revise-endpoint.ts also refuses administrators, whom every rule permits.
  readOnly: { disabledReason: 'administrator', madeBy: 'administrator' },
  search: ['url', 'description'],
  examples: [{ url: 'https://shop.example/hooks', events: ['products.*'], scheme: 'standard' }],
});

export const deliveriesCollection: Collection = resolveBuiltIn('deliveries', {
  description: 'The deliveries of events to endpoints, with their status and their next attempt.',
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
    lastLatencyMs: Type.Optional(Type.Integer()),
    /** From a digest of a value of few possible ones, the value could be found. */
    orderKey: Type.Optional(Type.String()),
  }),
  access: ownAccess,
  hidden: { orderKey: 'administrator' },
  // The first is the queue of each endpoint. The second finds the deliveries of an event.
  indexes: [['endpointId', 'dueAt'], 'eventId'],
  search: [],
});

export const recoveriesCollection: Collection = resolveBuiltIn('recoveries', {
  description: 'Recoveries of missed events of endpoints, with their progress.',
  schema: Type.Object({
    endpointId: Type.String(),
    since: time,
    until: time,
    /** Counts without sending. */
    dryRun: Type.Boolean(),
    status: Type.Union([Type.Literal('running'), Type.Literal('finished'), Type.Literal('stopped')]),
    examined: Type.Integer(),
    /** Events among them that the endpoint wants. */
    matching: Type.Integer(),
    /** Events among these whose failed delivery is tried again. */
    resent: Type.Integer(),
    /** Events among these without a delivery, which now have one. */
    created: Type.Integer(),
    finishedAt: timeOrNull,
    /** While it runs: the last examined event, and the last event to examine, as places in the log. */
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
 * Retention. The age of a row counts from its last change. Payloads are rows of the event log and have their own
 * setting; a delivery whose event is gone is concluded as expunged at its next attempt.
 */

/** Other processes read a wake within seconds; after that their sweep finds the delivery. */
const wakeSeconds = 60;
const recoverySeconds = 30 * 86_400;

export function sendingRetention({
  deliveryRetentionSeconds,
}: Pick<Settings, 'deliveryRetentionSeconds'>): readonly RetentionRule[] {
  return [
    { table: deliveriesCollection.name, seconds: deliveryRetentionSeconds },
    { table: attemptsTable, seconds: deliveryRetentionSeconds },
    // Of deliveries that were removed, or whose endpoint was.
    { table: deliveryLinesTable, seconds: deliveryRetentionSeconds },
    { table: wakesTable, seconds: wakeSeconds },
    { table: recoveriesCollection.name, seconds: recoverySeconds },
  ];
}

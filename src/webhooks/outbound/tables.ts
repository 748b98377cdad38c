/** Tables of the sender that nobody is served from, and what their rows hold. */

import type { EndpointSecret } from '../../model/endpoint.ts';
import type { Scope } from '../../model/principal.ts';

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

/** Deliveries that a unit with many of them owes (fan-out/fan-out-parts.ts). A row goes when its deliveries are made. */
export const fanOutTable = 'fan_out_parts';

/** Tells other processes that an endpoint has something due that no event told them of. Rows last a minute. */
export const wakesTable = 'webhook_wakes';

/** Who sends for which part of the endpoints, where several processes share the store. */
export const lanesTable = 'webhook_lanes';

/** Ed25519 keys of the signature version `v1a`. */
export const webhookKeysTable = 'webhook_keys';

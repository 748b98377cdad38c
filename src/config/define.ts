/**
 * What a user writes: `export default defineConfig({ collections: { products: collection({ ... }) } })`.
 * Both functions return what they are given; they are there so that an editor knows the types. Nothing is checked
 * here: configuration.ts reports all mistakes together, wherever in the file they stand.
 */
import type { CollectionDeclaration } from '../model/collection.ts';
import type { EventTypeDeclaration } from './event-types.ts';
import type { SenderDeclaration } from './senders.ts';
import type { SettingOverrides } from './settings.ts';
import type { TrustedIssuerDeclaration } from './trusted-issuers.ts';
import type { TunnelDeclaration } from './tunnel.ts';
import type { WebhookSchedules } from './webhook-schedules.ts';

export type ConfigurationDeclaration = {
  /** Name of the API, for people; shown in the OpenAPI document. Default `Comity`. */
  readonly title?: string;
  /** Path that every collection stands under. Default `/api/v1`. */
  readonly base?: string;
  /** Sent as `API-Version` with every answer. Default `1`. */
  readonly apiVersion?: string;
  /** Collections by the name that stands in their URLs. */
  readonly collections: Readonly<Record<string, CollectionDeclaration>>;
  /** Types of events that are posted to `{base}/events`, by name: `invoice.paid`. Others may be posted too, with any object. */
  readonly eventTypes?: Readonly<Record<string, EventTypeDeclaration>>;
  /** Issuers whose bearer tokens are taken beside our own (§5.2). */
  readonly issuers?: readonly TrustedIssuerDeclaration[];
  /** How webhooks are sent. */
  readonly webhooks?: {
    /** Seconds from each failed attempt to the next, in place of the default schedule of that name (§6). */
    readonly schedules?: Partial<WebhookSchedules>;
  };
  /** Who may send webhooks here, by the name that stands in the path `{base}/webhooks/{sender}` (§4.14). */
  readonly senders?: Readonly<Record<string, SenderDeclaration>>;
  /** Which hosts tunnels and forwarded requests may lead to, by who asks (§4.10). */
  readonly tunnel?: TunnelDeclaration;
  /** Settings of docs/reference/settings.md by name; the environment outranks them. */
  readonly settings?: SettingOverrides;
};

/** Declares what the program serves; the default export of a configuration file. */
export function defineConfig(declaration: ConfigurationDeclaration): ConfigurationDeclaration {
  return declaration;
}

/** Declares one collection. */
export function collection(declaration: CollectionDeclaration): CollectionDeclaration {
  return declaration;
}

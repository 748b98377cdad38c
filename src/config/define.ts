/**
 * What a user writes: `export default defineConfig({ collections: { products: collection({ ... }) } })`. Both functions return their argument
 * and give editors its type. configuration.ts checks everything and reports all mistakes together.
 */
import type { CollectionDeclaration } from '../model/collection.ts';
import type { EventTypeDeclaration } from './event-types.ts';
import type { SenderDeclaration } from './senders.ts';
import type { SettingOverrides } from './settings.ts';
import type { TrustedIssuerDeclaration } from './trusted-issuers.ts';
import type { TunnelDeclaration } from './tunnel.ts';
import type { WebhookSchedules } from './webhook-schedules.ts';

export type ConfigurationDeclaration = {
  /** Name of the API, for people, in the OpenAPI document. Default `Comity`. */
  readonly title?: string;
  /** Path of every collection. Default `/api/v1`. */
  readonly base?: string;
  /** Value of `API-Version` in every response. Default `1`. */
  readonly apiVersion?: string;
  /** Collections by their name in URLs. */
  readonly collections: Readonly<Record<string, CollectionDeclaration>>;
  /** Types of events that clients post to `{base}/events`, by name: `invoice.paid`. Other types may be posted too, with any object. */
  readonly eventTypes?: Readonly<Record<string, EventTypeDeclaration>>;
  /** Issuers whose bearer tokens are accepted besides our own (§5.2). */
  readonly issuers?: readonly TrustedIssuerDeclaration[];
  readonly webhooks?: {
    /** Seconds from each failed attempt to the next, replacing the default schedule of that name (§6). */
    readonly schedules?: Partial<WebhookSchedules>;
  };
  /** Senders of webhooks by their name in the path `{base}/webhooks/{sender}` (§4.14). */
  readonly senders?: Readonly<Record<string, SenderDeclaration>>;
  /** Hosts that tunnels and forwarded requests may connect to, by caller (§4.10). */
  readonly tunnel?: TunnelDeclaration;
  /** Settings of docs/reference/settings.md by name; the environment takes precedence. */
  readonly settings?: SettingOverrides;
};

/** Declares what the program serves; the default export of a configuration file. */
export function defineConfig(declaration: ConfigurationDeclaration): ConfigurationDeclaration {
  return declaration;
}

export function collection(declaration: CollectionDeclaration): CollectionDeclaration {
  return declaration;
}

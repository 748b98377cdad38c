/**
 * What a user writes: `export default defineConfig({ collections: { products: collection({ ... }) } })`. Both functions return their argument
 * and give editors its type. configuration.ts checks everything and reports all mistakes together.
 */
import { getCallSites } from 'node:util';
import type { Static, TObject } from 'typebox';
import type { CollectionDeclaration } from '../model/collection.ts';
import type { ActionDeclaration } from '../model/logic/actions.ts';
import type { Resources, ResourcesOf } from '../model/logic/collection-calls.ts';
import type { EventTypeDeclaration } from './event-types.ts';
import type { JobDeclaration } from './jobs.ts';
import type { MailDeclaration } from './mail-templates.ts';
import type { SenderDeclaration } from './senders.ts';
import type { SettingOverrides } from './settings.ts';
import type { SubscriberDeclaration } from './subscribers.ts';
import type { TrustedIssuerDeclaration } from './trusted-issuers.ts';
import type { TunnelDeclaration } from './tunnel.ts';
import type { WebhookSchedules } from './webhook-schedules.ts';

/** @template R the calls on its collections; never: not known */
export type ConfigurationDeclaration<R = never> = {
  /** Name of the API, for people, in the OpenAPI document. Default `Comity`. */
  readonly title?: string;
  /** Path of every collection. Default `/api/v1`. */
  readonly base?: string;
  /** Value of `API-Version` in every response. Default `1`. */
  readonly apiVersion?: string;
  /** Collections by their name in URLs. */
  readonly collections: Readonly<Record<string, CollectionDeclaration>>;
  /** Requests on paths of their own, by name. */
  readonly actions?: Readonly<Record<string, ActionDeclaration<undefined>>>;
  /** Types of events that clients post to `{base}/events`, by name: `invoice.paid`. Other types may be posted too, with any object. */
  readonly eventTypes?: Readonly<Record<string, EventTypeDeclaration>>;
  /** Issuers whose bearer tokens are accepted besides our own (§5.2). */
  readonly issuers?: readonly TrustedIssuerDeclaration[];
  /** Templates of mails, and when mails are tried again. */
  readonly mail?: MailDeclaration;
  readonly webhooks?: {
    /** Seconds from each failed attempt to the next, replacing the default schedule of that name (§6). */
    readonly schedules?: Partial<WebhookSchedules>;
  };
  /** Senders of webhooks by their name in the path `{base}/webhooks/{sender}` (§4.14). */
  readonly senders?: Readonly<Record<string, SenderDeclaration<R>>>;
  /** Functions that get events after the commit, by name. */
  readonly subscribers?: Readonly<Record<string, SubscriberDeclaration<R>>>;
  /** Functions that run at scheduled times, by name. */
  readonly jobs?: Readonly<Record<string, JobDeclaration<R>>>;
  /** Hosts that tunnels and forwarded requests may connect to, by caller (§4.10). */
  readonly tunnel?: TunnelDeclaration;
  /** Settings of docs/reference/settings.md by name; the environment takes precedence. */
  readonly settings?: SettingOverrides;
};

type Declarations = Readonly<Record<string, CollectionDeclaration>>;

/** The calls on the collections of a configuration. */
export type ResourcesIn<C> = string extends keyof C
  ? Resources
  : ResourcesOf<{ [Name in keyof C]: FieldsOf<C[Name]> }>;

type FieldsOf<C> = C extends { readonly schema: infer Schema extends TObject } ? Static<Schema> : never;

/** A configuration whose collections the compiler knows. */
export type Configured<C> = ConfigurationDeclaration & { readonly collections: C };

/** Declares what the program serves; the default export of a configuration file. */
export function defineConfig<C extends Declarations>(
  declaration: ConfigurationDeclaration<ResourcesIn<C>> & { readonly collections: C },
): Configured<C> {
  noteCaller(declaration);
  return declaration as Configured<C>;
}

/** One symbol for all copies of this package in a process. */
const callerSymbol = Symbol.for('comity.definedIn');

/** Keeps the file that called `defineConfig`, for programs that get the declaration without its file; a copy of the object has none. */
function noteCaller(declaration: object): void {
  const [, , caller] = getCallSites(callSitesMax);
  if (caller === undefined || !Object.isExtensible(declaration)) return;
  Object.defineProperty(declaration, callerSymbol, { value: caller.scriptName, configurable: true });
}

const callSitesMax = 3;

/** URL or path of the file that called `defineConfig` for this object; undefined: not known. */
export function definedIn(declaration: object): string | undefined {
  return (declaration as { readonly [callerSymbol]?: string })[callerSymbol];
}

/** What a program has to do that starts the declaration itself. */
export const moduleSentence =
  'run on threads, which import the file whose default export is the configuration: give its URL as the option module, such as ' +
  "new URL('./comity.config.ts', import.meta.url)";

/**
 * The fields that clients write are those of the schema, and the compiler holds everything else to them.
 * @template R what its functions know of all collections: `Schemas`, or the type of their own parameter
 */
export function collection<S extends TObject, R = Resources, const C extends string = never>(
  declaration: CollectionDeclaration<S, Static<S>, R, C>,
): CollectionDeclaration<S> {
  return declaration as unknown as CollectionDeclaration<S>;
}

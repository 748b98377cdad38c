/**
 * The functions that a user's declaration calls: `export default defineConfig({ collections: { products: collection({ ... }) } })`. Both functions return their argument
 * and give editors its type. configuration.ts checks everything and reports all mistakes together.
 */
import util from 'node:util';
import type { Static, TObject, TSchema } from 'typebox';
import type { Rule } from '../model/access.ts';
import type {
  CollectionDeclaration,
  ComputedField,
  ComputedSchemas,
  OnDelete,
  StampDeclaration,
  TextMember,
} from '../model/collection.ts';
import type { Change } from '../model/event.ts';
import type { WithOpenFiles } from '../model/file.ts';
import type {
  ActionDeclaration,
  ActionMethod,
  ActionPlace,
  Output,
  OutputBytes,
} from '../model/logic/actions.ts';
import type {
  Account,
  Document,
  FurtherMembers,
  MergePatch,
  NewFields,
  Resources,
  ResourcesOf,
} from '../model/logic/collection-calls.ts';
import type { Logic, Refusing } from '../model/logic/logic.ts';
import type { AccountsDeclaration } from './accounts.ts';
import type { EventTypeDeclaration } from './event-types.ts';
import type { SubscriberDeclaration } from './inspect-functions.ts';
import type { JobDeclaration } from './jobs.ts';
import type { MailDeclaration } from './mail-templates.ts';
import type { MigrationDeclaration } from './migrations.ts';
import type { PortalDeclaration } from './portal.ts';
import type { SenderDeclaration } from './senders.ts';
import type { SettingOverrides } from './settings.ts';
import type { TrustedIssuerDeclaration } from './trusted-issuers.ts';
import type { TunnelDeclaration } from './tunnel.ts';
import type { WebhookSchedules } from './webhook-schedules.ts';

/** The patterns of event types of subscribers, by their names. */
type SubscribedTypes = Readonly<Record<string, string>>;

/**
 * @template R the calls on its collections; never: not known
 * @template C the declarations of its collections @template E the patterns of its subscribers
 * @template F the schema of the fields of its accounts
 */
export type ConfigurationDeclaration<
  R = never,
  C = unknown,
  E extends SubscribedTypes = SubscribedTypes,
  F extends TObject = TObject,
> = {
  /** Name of the API, for people, in the OpenAPI document. Default `Comity`. */
  readonly title?: string;
  /** Path of every collection. Default `/api/v1`. */
  readonly base?: string;
  /** Value of `API-Version` in every response. Default `1`. */
  readonly apiVersion?: string;
  /** Collections by their name in URLs. */
  readonly collections: Readonly<Record<string, CollectionDeclaration>>;
  /** Fields of accounts, and who sees, changes and administers accounts. */
  readonly accounts?: AccountsDeclaration<F, R>;
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
  readonly subscribers?: { readonly [Name in keyof E]: SubscriberDeclaration<R, E[Name], C> };
  /** Functions that run at scheduled times, by name. */
  readonly jobs?: Readonly<Record<string, JobDeclaration<R>>>;
  /** What brings stored documents to the present declaration, in the order in which it was written: new ones go to the end. */
  readonly migrations?: readonly MigrationDeclaration<C>[];
  /** Name, colour and framing pages of the consumers' portal (§5.10). */
  readonly portal?: PortalDeclaration;
  /** Hosts that tunnels and forwarded requests may connect to, by caller (§4.10). */
  readonly tunnel?: TunnelDeclaration;
  /** Settings of docs/reference/settings.md by name; the environment takes precedence. */
  readonly settings?: SettingOverrides;
};

type Declarations = Readonly<Record<string, CollectionDeclaration>>;

/** The calls on the collections of a configuration. */
export type ResourcesIn<C> = string extends keyof C ? Resources : ResourcesOf<C>;

/**
 * A configuration whose collections the compiler knows.
 * @template A its actions @template V its types of events @template F the schema of the fields of its accounts
 */
export type Configured<C, A = unknown, V = unknown, F extends TObject = TObject> = Omit<
  ConfigurationDeclaration,
  'collections'
> & {
  // Without the index signature of a declaration, with which any name would be one of a collection.
  readonly collections: C;
  /** Only for the compiler: what `comity/client` knows of the program, as an `Api`. */
  readonly '~api'?: DescribedProgram<C, A, V, F>;
};

/** Declares what the program serves; the default export of a configuration file. */
export function defineConfig<
  C extends Declarations,
  E extends SubscribedTypes = SubscribedTypes,
  F extends TObject = TObject,
  A extends Readonly<Record<string, ActionDeclaration<undefined>>> = Readonly<Record<never, never>>,
  V extends Readonly<Record<string, EventTypeDeclaration>> = Readonly<Record<never, never>>,
>(
  declaration: ConfigurationDeclaration<ResourcesIn<C>, C, E, F> & {
    readonly collections: C & Referring<C>;
    readonly actions?: A;
    readonly eventTypes?: V;
    readonly subscribers?: {
      readonly [Name in keyof E]: { readonly events: readonly EmittedPattern<E[Name], C, V>[] };
    };
  },
): Configured<C, A, V, F> {
  noteCaller(declaration);
  return declaration as never;
}

/** A pattern that an event can match: of a write, of a declared type, or of Comity's own about endpoints. */
type EmittedPattern<E extends string, C, V> = string extends E
  ? E
  : E extends `${infer Above}.*`
    ? Above extends keyof C | 'endpoint'
      ? E
      : [Extract<keyof V, `${Above}.${string}`>] extends [never]
        ? 'no collection emits such events: declare their types in eventTypes'
        : E
    : E extends '*' | keyof V | `${keyof C & string}.${Change}` | `endpoint.${string}`
      ? E
      : 'no collection emits this event: declare its type in eventTypes';

/** One symbol for all copies of this package in a process. */
const callerSymbol = Symbol.for('comity.definedIn');

/** Keeps the file that called `defineConfig`, for programs that get the declaration without its file; a copy of the object has none. */
function noteCaller(declaration: object): void {
  const [, , caller] = util.getCallSites(callSitesMax);
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

/** The collections that fields refer to, by the names of the fields. */
type Targets = Readonly<Record<string, string>>;

type ReferencesTo<To> = {
  readonly [Field in keyof To]: {
    readonly collection: To[Field];
    readonly countAs?: string;
    /** Default `restrict`. */
    readonly onDelete?: OnDelete;
  };
};

/** `To` is inferred with any name, so that the declared fields alone would not be checked. */
type OfFields<To, S extends TObject> = {
  readonly [Name in Exclude<keyof To, TextMember<Static<S>>>]: 'this is no text of the schema';
};

/** Each reference leads to a collection of the configuration. */
type Referring<C> = {
  readonly [Name in keyof C]: C[Name] extends { readonly references?: infer References }
    ? {
        readonly references?: {
          readonly [Field in keyof References]: Referable<References[Field], keyof C | 'users'>;
        };
      }
    : unknown;
};

type Referable<Reference, Name> = Reference extends { readonly collection: infer To }
  ? string extends To
    ? unknown
    : { readonly collection: Name }
  : unknown;

/** The names of fields in the members of a declaration beside its schema. */
type Named = {
  readonly stamp: string;
  readonly unpatchable: string;
  readonly tenant: string;
  readonly hidden: string;
  readonly readOnly: string;
};

/**
 * What `collection` returns: what `resources` and clients must know of a collection, beside the declaration.
 * @template N the names of members with a conduct of their own
 */
type Collected<
  S extends TObject,
  K extends ComputedSchemas,
  Soft extends boolean,
  To extends Targets,
  A,
  N extends Named,
> = Omit<
  CollectionDeclaration<S>,
  'computed' | 'softDelete' | 'references' | 'stamp' | 'unpatchable' | 'tenantField'
> & {
  readonly '~api'?: {
    readonly document: Document<
      Hiding<Static<S>, N['hidden']>,
      FurtherMembers<{ readonly [Name in keyof K]: ComputedField<Static<S>, K[Name]> }, Soft>
    >;
    readonly create: NewFields<S, N['stamp'], N['readOnly'] | N['hidden'] | N['tenant']>;
    readonly patch: MergePatch<NewFields<S, N['stamp'] | N['unpatchable'] | N['tenant']>>;
    readonly references: To;
    readonly actions: DescribedParts<A>;
  };
  readonly references?: ReferencesTo<To>;
  readonly computed?: { readonly [Name in keyof K]: ComputedField<Static<S>, K[Name]> };
  readonly softDelete?: Soft;
  readonly stamp?: { readonly [Name in N['stamp']]: StampDeclaration };
  readonly unpatchable?: readonly N['unpatchable'][];
  readonly tenantField?: N['tenant'];
};

/** Callers who may not see a member get the document without it. */
type Hiding<T, Hidden> = [Hidden] extends [never]
  ? T
  : Omit<T, Hidden & string> & { readonly [Name in Extract<keyof T, Hidden>]?: T[Name] };

/**
 * The fields that clients write are those of the schema, and the compiler holds everything else to them.
 * @template R what its functions know of all collections: `Schemas`, or the type of their own parameter
 * @template K the schemas of its computed fields
 */
export function collection<
  S extends TObject,
  R = Resources,
  K extends ComputedSchemas = Readonly<Record<never, TSchema>>,
  const Soft extends boolean = false,
  const To extends Targets = Readonly<Record<never, never>>,
  A extends Readonly<
    Record<string, ActionDeclaration<'member' | 'collection', WithOpenFiles<Static<S>>>>
  > = Readonly<Record<never, never>>,
  Stamped extends TextMember<Static<S>> = never,
  Fixed extends keyof Static<S> & string = never,
  Tenant extends TextMember<Static<S>> = never,
  Hidden extends (keyof Static<S> | keyof K) & string = never,
  Restricted extends keyof Static<S> & string = never,
>(
  declaration: CollectionDeclaration<S, Static<S>, R, K, Soft> & {
    readonly references?: ReferencesTo<To> & OfFields<To, S>;
    readonly actions?: A;
    readonly stamp?: { readonly [Name in Stamped]?: StampDeclaration };
    readonly unpatchable?: readonly Fixed[];
    readonly tenantField?: Tenant;
    readonly hidden?: { readonly [Name in Hidden]?: Rule<Static<S>> };
    readonly readOnly?: { readonly [Name in Restricted]?: Rule<Static<S>> };
  },
): NoInfer<
  Collected<
    S,
    K,
    Soft,
    To,
    A,
    {
      readonly stamp: Stamped;
      readonly unpatchable: Fixed;
      readonly tenant: Tenant;
      readonly hidden: Hidden;
      readonly readOnly: Restricted;
    }
  >
> {
  return declaration as never;
}

/** What `comity/client` knows of each part. */
type DescribedParts<Parts> = {
  readonly [Name in keyof Parts as Parts[Name] extends Describing ? Name : never]: Parts[Name] extends {
    readonly '~api'?: infer Described;
  }
    ? Routed<NonNullable<Described>, Name & string>
    : never;
};

type Describing = { readonly '~api'?: unknown };

/** An action without a path has its name. */
type Routed<Described, Name extends string> = Described extends {
  readonly method: infer M extends string;
  readonly path: infer P extends string;
}
  ? Omit<Described, 'method' | 'path'> & {
      readonly route: `${M} /${string extends P ? Name : P extends `/${infer Rest}` ? Rest : P}`;
    }
  : Described;

/** The `Api` of a program. */
type DescribedProgram<C, A, V, F extends TObject> = {
  readonly collections: DescribedParts<C> & {
    readonly users: {
      readonly document: Document<Account & FieldsOf<F>>;
      readonly create: Readonly<Record<string, unknown>>;
      readonly patch: MergePatch<Partial<Omit<Account, 'emailVerified'>> & FieldsOf<F>>;
    };
  };
  readonly actions: DescribedParts<A>;
  readonly events: {
    readonly [Type in keyof V]: V[Type] extends { readonly schema: infer S extends TObject }
      ? Static<S>
      : Readonly<Record<string, unknown>>;
  };
};

type FieldsOf<F extends TObject> = [TObject] extends [F] ? unknown : Static<F>;

// Actions: requests beyond reading and writing documents, such as merging two tickets. `action({ ... })` declares one on each member of a
// collection, on a collection, or on a path of its own; actions.ts checks it, src/logic/actions serves it.

type Returned<O> = O extends Output<infer V> ? V : O extends TSchema ? Static<O> : unknown;

/** The value that a client gets: what a handler says about octets arrives in header fields. */
type Received<O> = Exclude<Returned<O>, OutputBytes>;

type CaptureNames<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? Name | CaptureNames<Rest>
  : never;

/**
 * The argument of a handler.
 * @template I the type of the input @template T the fields of the member's document @template R the calls on all collections
 */
export type Acting<
  I = unknown,
  T = Record<string, unknown>,
  R = Resources,
  Code extends string = string,
  On extends ActionPlace = 'member',
  Captures extends string = string,
> = Logic<R> &
  Refusing<Code> & {
    /** The id of the member. */
    readonly id: [On] extends ['member'] ? string : undefined;
    /** The member as it is stored, with all members. The action runs again if it is changed before the action is committed. */
    readonly document: [On] extends ['member'] ? Document<WithOpenFiles<T>> : undefined;
    /** Decoded, by the names in `path`. */
    readonly captures: Readonly<Record<Captures, string>>;
    /** Valid by the schema, with its defaults. An empty object without a schema. */
    readonly input: I;
    /**
     * Aborted when the time is over (COMITY_ACTION_TIMEOUT_MS), or the client resets its connection or stream; a client of HTTP/1.1 that only
     * closes its side may still read. Pass it on to long operations.
     */
    readonly signal: AbortSignal;
  };

type JudgesDocument = 'owner' | 'tenant' | { readonly where: unknown };

/** Only an action on members has a document for the rule to judge. */
type Judging<On extends ActionPlace, A> = [On] extends ['member']
  ? unknown
  : A extends JudgesDocument
    ? Exclude<Rule, JudgesDocument>
    : unknown;

type ActionParts<
  On extends ActionPlace,
  P extends string,
  I extends TObject,
  O extends TSchema | Output,
  Code extends string,
  T,
  R,
  A = Rule<T> | (string & {}),
> = {
  /** Required for an action of a collection. It is on each member, `{collection}/{id}/{name}`, or the collection, `{collection}/{name}`. */
  readonly on?: On;
  readonly method: ActionMethod;
  /** Default the name. `/merge/{into}` has a capture. Of free actions from the base, of others from the member or the collection. */
  readonly path?: P;
  /** A TypeBox object: the content as JSON, form or multipart; the query string of GET and DELETE. */
  readonly input?: I;
  /** A TypeBox schema of JSON, or `output.text()`, `.bytes()`, `.stream()`, `.redirect()`. Absent: 204. */
  readonly output?: O;
  /** Who may call it. Default: the rule `update` of the collection for members, otherwise `principal`. Any other text is a role. */
  readonly access?: A & Judging<On, A>;
  /** The collections whose ids members of the input hold: a form offers their documents. */
  readonly references?: { readonly [Name in keyof Static<I> & string]?: string };
  /** The codes that its handler refuses with: a list, or an object with their statuses. Absent: any. */
  readonly codes?: readonly Code[] | { readonly [Each in Code]: number };
  readonly summary?: string;
  readonly description?: string;
  /** For the OpenAPI document. */
  readonly example?: { readonly input?: Static<I>; readonly output?: Returned<O> };
  /** Runs in one transaction, which is committed before the response, and again if that was overtaken. GET and QUERY only read. */
  readonly handler: (
    acting: Acting<
      [TObject] extends [I] ? Record<string, never> : Static<I>,
      T,
      R,
      Code,
      On,
      [string] extends [P] ? string : CaptureNames<P>
    >,
  ) => Returned<O> | Promise<Returned<O>>;
};

/**
 * Declares an action. A handler that names the type of its parameter knows the document and the collections:
 * `handler({ document }: Acting<Static<typeof Input>, Ticket, Desk>)`.
 */
export function action<
  const On extends ActionPlace = undefined,
  const P extends string = string,
  I extends TObject = TObject,
  O extends TSchema | Output = Output,
  const Code extends string = string,
  T = Record<string, unknown>,
  R = Resources,
  const A extends Rule<T> | (string & {}) = string,
  const M extends ActionMethod = ActionMethod,
>(
  declaration: ActionParts<On, P, I, O, Code, T, R, A> & { readonly method: M },
): ActionDeclaration<NoInfer<On>, T> & DescribedAction<On, M, P, I, O, Code> {
  // Its parts are of types that nothing else can name; config/actions.ts inspects them.
  return declaration as unknown as ActionDeclaration<On, T>;
}

/** What `comity/client` knows of an action; its name comes from where it stands. */
type DescribedAction<On, M, P, I extends TObject, O, Code> = {
  readonly '~api'?: {
    readonly on: On;
    readonly method: M;
    readonly path: P;
    readonly input: [TObject] extends [I] ? undefined : NewFields<I>;
    readonly output: [Output] extends [O] ? undefined : Received<O>;
    readonly codes: string extends Code ? never : Code;
  };
};

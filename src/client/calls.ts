/**
 * The calls of a client, typed by an `Api`: what a query may name, and what its answer has after `fields` and `expand`. Arrays of literals and
 * paths of two names: what compiles in a fifth of a second for 300 calls. There is no code here.
 */
import type { ApiFile, ApiOf, ClientEvent, CollectionsOf, PartOf } from './api.ts';
import type { ComityError, ErrorCode } from './error.ts';
import type { LiveList, LiveQuery } from './live.ts';
import type { ManyCalls } from './many.ts';
import type { CallOptions } from './send.ts';
import type { SessionTokens } from './session.ts';
import type { FieldUploadOptions, UploadOptions } from './upload.ts';

type Scalar = string | number | boolean;
type Text<K> = K & string;

/** Names of members: `title`, and `address.city` of an object. */
export type Path<D> = {
  [Name in Text<keyof D>]: NonNullable<D[Name]> extends Scalar | readonly unknown[]
    ? Name
    : NonNullable<D[Name]> extends object
      ? Name | `${Name}.${Text<keyof NonNullable<D[Name]>>}`
      : Name;
}[Text<keyof D>];

type ValueAt<D, P> = P extends keyof D
  ? D[P]
  : P extends `${infer Outer}.${infer Inner}`
    ? Outer extends keyof D
      ? ValueAt<NonNullable<D[Outer]>, Inner>
      : never
    : never;

type ItemOf<V> = V extends readonly (infer Item)[] ? Item : V;
type Comparable<V> = Extract<ItemOf<NonNullable<V>>, Scalar>;

/** A value, or operators on it, as in the JSON content of a QUERY. */
export type Condition<V> =
  | V
  | null
  | {
      readonly eq?: V | null;
      readonly ne?: V | null;
      readonly gt?: V;
      readonly gte?: V;
      readonly lt?: V;
      readonly lte?: V;
      readonly in?: readonly (V | null)[];
      readonly like?: string;
      /** `eq` and `like` without regard to case. */
      readonly eqi?: string;
      readonly ilike?: string;
    };

type DocumentOf<A, N> = N extends keyof CollectionsOf<A>
  ? PartOf<CollectionsOf<A>[N], 'document', object>
  : Readonly<Record<string, unknown>>;
type References<C> = PartOf<C, 'references', Record<never, string>>;
type Target<C, Field> = Field extends keyof References<C> ? References<C>[Field] : never;
type TargetCollection<A, C, Field> =
  Target<C, Field> extends infer N ? (N extends keyof CollectionsOf<A> ? CollectionsOf<A>[N] : never) : never;

/** A path of `expand`: a reference, or a reference of the document that it leads to. */
export type ExpandPath<A, C> = {
  [Field in Text<keyof References<C>>]:
    | Field
    | `${Field}.${Text<keyof References<TargetCollection<A, C, Field>>>}`;
}[Text<keyof References<C>>];

/** The collections on the way of a path. */
type Reached<A, C, P> = P extends `${infer First}.${infer Rest}`
  ? Target<C, First> | Target<TargetCollection<A, C, First>, Rest>
  : Target<C, P>;

/** Fields of the documents that references name. */
type ThroughPath<A, C> = {
  [Field in Text<keyof References<C>>]: `${Field}.${Text<keyof DocumentOf<A, Target<C, Field>>>}`;
}[Text<keyof References<C>>];

/** Conditions that must all hold. */
export type Filter<A, C, D = PartOf<C, 'document', object>> = {
  readonly [P in Path<D>]?: Condition<Comparable<ValueAt<D, P>>>;
} & { readonly [P in ThroughPath<A, C>]?: Condition<Scalar> } & {
  readonly and?: readonly Filter<A, C, D>[];
  readonly or?: readonly Filter<A, C, D>[];
  readonly not?: Filter<A, C, D>;
};

type SortKey<D> = Path<D> | 'rank';

/** Which documents, in which order. */
export type Selection<A, C, D = PartOf<C, 'document', object>> = {
  readonly filter?: Filter<A, C>;
  /** `-` reverses; `-rank` orders what `q` finds. */
  readonly sort?: readonly (SortKey<D> | `-${SortKey<D>}`)[];
  /** Words to search for. */
  readonly q?: string;
};

/** Members of the answer, and documents to include. */
export type Shape<F, E, C = unknown> = {
  /** The members to return. Default all. */
  readonly fields?: F;
  /** References whose documents `included` has, by collection and id. */
  readonly expand?: E;
  /** Numbers of the documents that refer to each one. */
  readonly counts?: readonly PartOf<C, 'counts', string>[];
};

export type ListQuery<A, C, F, E> = Selection<A, C> &
  Shape<F, E, C> & {
    /** Documents of the page: 20 unless given, at most 1000. */
    readonly limit?: number;
    /** The `nextCursor` of the page before, with the same query. */
    readonly cursor?: string;
  };

type Inner<V, F extends string> = V extends object ? Select<V, F> : V;

type Select<D, F extends string> = {
  [Name in keyof D as Name extends F
    ? Name
    : F extends `${Text<Name>}.${string}`
      ? Name
      : never]: Name extends F ? D[Name] : Inner<D[Name], F extends `${Text<Name>}.${infer I}` ? I : never>;
};

/** The entity tag of a document, by which `update` and `delete` notice that it was changed meanwhile. */
export type Tagged = { readonly etag?: string };

/** A document with the members that were asked for. */
export type Selected<D, F extends readonly string[]> = ('*' extends F[number] ? D : Select<D, F[number]>) &
  Tagged;

type Included<A, C, E extends readonly string[]> = [E[number]] extends [never]
  ? unknown
  : {
      readonly included: {
        readonly [N in Text<Reached<A, C, E[number]>>]?: Readonly<Record<string, DocumentOf<A, N>>>;
      };
    };

export type Page<A, C, F extends readonly string[], E extends readonly string[]> = {
  readonly items: readonly Selected<PartOf<C, 'document', object>, F>[];
  /** Null on the last page. */
  readonly nextCursor: string | null;
  /** By id, if `counts` was asked for. */
  readonly counts?: Readonly<Record<string, Readonly<Record<string, number>>>>;
} & Included<A, C, E>;

/** Its documents have their ids, whatever was asked for. */
type LivePage<A, C, F extends readonly string[], E extends readonly string[]> = {
  readonly items: readonly (Selected<PartOf<C, 'document', object>, F> & { readonly id: string })[];
} & Omit<Page<A, C, F, E>, 'items'>;

/** An aggregate query, as in the JSON content of a QUERY. */
export type AggregateQuery<A, C> = Omit<Selection<A, C>, 'sort'> & {
  readonly aggregate?: Readonly<Record<string, unknown>>;
  readonly groupBy?: readonly (
    | Path<PartOf<C, 'document', object>>
    | {
        /** Groups times by the day, week, month or year that they are in, of a time zone of the IANA database (UTC). */
        readonly by: Path<PartOf<C, 'document', object>>;
        readonly unit: 'day' | 'week' | 'month' | 'year';
        readonly timeZone?: string;
        readonly as?: string;
      }
  )[];
  readonly having?: Readonly<Record<string, unknown>>;
  readonly sort?: readonly string[];
  readonly limit?: number;
  readonly cursor?: string;
};

/** An id, or a document that was read with its id. */
type Id = string | { readonly id: string };
type AllFields = readonly ['*'];
type NoPaths = readonly [];
type Fields<D> = readonly (Path<D> | '*')[];
type Paths<A, C> = readonly ExpandPath<A, C>[];

/** The fields that hold a file, or a list of files. */
type FileField<D> = {
  [Name in Text<keyof D>]: NonNullable<D[Name]> extends ApiFile | readonly ApiFile[] ? Name : never;
}[Text<keyof D>];

/** The calls on one collection. @template A the `Api` @template C its `ApiCollection` */
export type CollectionClient<A, C, D = PartOf<C, 'document', object>> = ManyCalls<
  Filter<A, C>,
  PartOf<C, 'create'>,
  PartOf<C, 'patch'>
> & {
  /** Reads a document. A second read that finds it unchanged costs a 304. @throws ComityError `not_found` */
  get<const F extends Fields<D> = AllFields, const E extends Paths<A, C> = NoPaths>(
    id: string,
    options?: Shape<F, E, C> & CallOptions,
  ): Promise<Selected<D, F> & Included<A, C, E>>;
  /** Reads a page: by GET, or by QUERY where a URL cannot say the query. */
  list<const F extends Fields<D> = AllFields, const E extends Paths<A, C> = NoPaths>(
    query?: ListQuery<A, C, F, E>,
    options?: CallOptions,
  ): Promise<Page<A, C, F, E>>;
  /** Every document, page by page as it is read. `limit` is the size of the pages. */
  all<const F extends Fields<D> = AllFields>(
    query?: Omit<ListQuery<A, C, F, NoPaths>, 'cursor' | 'expand' | 'counts'>,
    options?: CallOptions,
  ): AsyncIterable<Selected<D, F>>;
  create(content: PartOf<C, 'create'>, options?: CallOptions): Promise<D & Tagged>;
  /**
   * Changes members. Given the document that was read, it notices that someone else changed the same member meanwhile, and merges what they
   * changed of the rest. Given an id, the last writer wins.
   * @throws ConflictError
   */
  update(document: Id, change: PartOf<C, 'patch'>, options?: CallOptions): Promise<D & Tagged>;
  /** Replaces the whole document, given as it was read only if it was not changed meanwhile. @throws ConflictError */
  replace(
    document: Id,
    content: PartOf<C, 'replace', PartOf<C, 'create'>>,
    options?: CallOptions,
  ): Promise<D & Tagged>;
  /** Deletes a document, given as it was read only if it was not changed meanwhile. @throws ConflictError */
  delete(document: Id, options?: CallOptions): Promise<void>;
  /**
   * Sets the file of a field, or adds one to a list. A file over 512 KiB goes in chunks, with progress, and resumes after a cut.
   * @returns the file as the document has it
   */
  upload<N extends FileField<D>>(
    document: Id,
    field: N,
    file: Blob,
    options?: FieldUploadOptions,
  ): Promise<ItemOf<NonNullable<D[N]>>>;
  /** Sends a QUERY: a page of documents, or of groups with `aggregate` and `groupBy`. */
  query<const F extends Fields<D> = AllFields, const E extends Paths<A, C> = NoPaths>(
    query: ListQuery<A, C, F, E>,
    options?: CallOptions,
  ): Promise<Page<A, C, F, E>>;
  query(
    query: AggregateQuery<A, C>,
    options?: CallOptions,
  ): Promise<{
    readonly items: readonly Readonly<Record<string, unknown>>[];
    readonly nextCursor: string | null;
  }>;
  /** A list that stays current until `stop`. Its code is loaded by the first call. */
  live<const F extends Fields<D> = AllFields, const E extends Paths<A, C> = NoPaths>(
    query?: Omit<ListQuery<A, C, F, E>, 'cursor' | 'counts'>,
    options?: LiveQuery,
  ): Promise<LiveList<LivePage<A, C, F, E>>>;
  readonly actions: {
    readonly [Name in keyof PartOf<C, 'actions', unknown>]: ActionCall<PartOf<C, 'actions', unknown>[Name]>;
  };
};

type CaptureNames<Route> = Route extends `${string}{${infer Name}}${infer Rest}`
  ? Name | CaptureNames<Rest>
  : never;

/** With the parts of a path in braces: `{ captures: { provider: 'card' } }`. */
type ActionOptions<X> = [CaptureNames<PartOf<X, 'route'>>] extends [never]
  ? [options?: CallOptions]
  : [
      options: CallOptions & {
        readonly captures: Readonly<Record<CaptureNames<PartOf<X, 'route'>>, string>>;
      },
    ];

type Input<X> = PartOf<X, 'input', undefined>;

type ActionArguments<X> = [CaptureNames<PartOf<X, 'route'>>] extends [never]
  ? undefined extends Input<X>
    ? [input?: Input<X>, ...options: ActionOptions<X>]
    : Record<never, never> extends Input<X>
      ? [input?: Input<X>, ...options: ActionOptions<X>]
      : [input: Input<X>, ...options: ActionOptions<X>]
  : [input: Input<X>, ...options: ActionOptions<X>];

/** An action of a member takes its id or the document first. */
export type ActionCall<X> =
  PartOf<X, 'on', undefined> extends 'member'
    ? (member: Id, ...rest: ActionArguments<X>) => Promise<PartOf<X, 'output', undefined>>
    : (...rest: ActionArguments<X>) => Promise<PartOf<X, 'output', undefined>>;

/** The routes that a client must be given: of actions whose method is not POST, or whose path is not their name. */
export type Routes<A> = {
  readonly [N in keyof CollectionsOf<A> as Unusual<CollectionsOf<A>[N]> extends never ? never : N]: {
    readonly [Name in Unusual<CollectionsOf<A>[N]>]: PartOf<
      PartOf<CollectionsOf<A>[N], 'actions', unknown>[Name],
      'route'
    >;
  };
} & (Unusual<A> extends never
  ? unknown
  : {
      readonly actions: {
        readonly [Name in Unusual<A>]: PartOf<PartOf<A, 'actions', unknown>[Name], 'route'>;
      };
    });

type Unusual<X, Actions = PartOf<X, 'actions', unknown>> = {
  [Name in keyof Actions]: PartOf<Actions[Name], 'route'> extends `POST /${Text<Name>}` ? never : Name;
}[keyof Actions];

type Change = 'created' | 'updated' | 'deleted';

/** `data.object` by the types of events. */
type EventObjects<A> = {
  readonly [N in Text<keyof CollectionsOf<A>> as `${N}.${Change}`]: DocumentOf<A, N>;
} & PartOf<A, 'events', unknown>;

/** The events of an `Api`, and any that applications post without a declaration. */
export type EventOf<A, T extends keyof EventObjects<A> = keyof EventObjects<A>> = {
  [Type in Text<T>]: ClientEvent<Type, EventObjects<A>[Type]>;
}[Text<T>];

type EventTypes<A> = Text<keyof EventObjects<A>>;

export type EventsClient<A> = {
  /** A page of the log. */
  list(
    query?: {
      readonly filter?: Readonly<Record<string, Condition<Scalar>>>;
      readonly sort?: readonly string[];
      readonly limit?: number;
      readonly cursor?: string;
    },
    options?: CallOptions,
  ): Promise<{ readonly items: readonly EventOf<A>[]; readonly nextCursor: string | null }>;
  /** A page of the feed, in the order of commits: what follows `after`, held up to `wait` seconds if that is nothing. */
  feed<const T extends EventTypes<A> = EventTypes<A>>(
    query: {
      readonly after: string;
      readonly types?: readonly T[];
      readonly limit?: number;
      readonly wait?: number;
    },
    options?: CallOptions,
  ): Promise<{ readonly items: readonly (EventOf<A, T> | Moved)[]; readonly nextCursor: string }>;
  /**
   * Every event from `after` on, without a gap over lost connections: the id of an event, a `Comity-Position`, empty for the oldest, or by
   * default from now on. Its code is loaded by the first call.
   * @throws ComityError `position_expired` if events were missed that are no longer kept: read the lists again; `body.reset.position` goes on
   */
  follow<const T extends EventTypes<A> = EventTypes<A>>(
    query?: { readonly types?: readonly T[]; readonly after?: string },
    options?: Pick<CallOptions, 'signal'>,
  ): AsyncIterable<EventOf<A, T> | Moved>;
  /** Posts an event of a declared type. */
  post<const T extends Text<keyof PartOf<A, 'events', unknown>>>(
    type: T,
    object: PartOf<A, 'events', unknown>[T],
    options?: CallOptions & { readonly id?: string },
  ): Promise<ClientEvent<T, PartOf<A, 'events', unknown>[T]>>;
};

/** Documents that the caller may no longer read, or may read now. They have no `type`. */
export type Moved = {
  readonly [Way in 'left' | 'entered']?: {
    readonly collection: string;
    readonly id?: string;
    readonly where?: Readonly<Record<string, unknown>>;
    readonly some?: boolean;
  };
} & { readonly type?: undefined };

/** The caller. */
export type Me<Fields = Readonly<Record<string, unknown>>> = {
  readonly id: string;
  readonly kind: 'user' | 'key' | 'administrator' | 'external';
  readonly email?: string;
  readonly name?: string;
  readonly roles: readonly string[];
  readonly scopes: readonly string[];
  readonly tenant: string | null;
  readonly fields?: Fields;
  readonly authenticatedBy: 'key' | 'token' | 'issuer' | 'password' | 'session-cookie';
};

/** A passkey in place of a password: the challenge of its options, and what `navigator.credentials.create` made, as JSON. */
type FirstPasskey = { readonly challenge: string; readonly response: unknown; readonly name?: string };

export type AuthClient = {
  /** Opens a session, and keeps its tokens. @throws ComityError `second_factor_required` with `body.challenge` */
  login(
    content: { readonly email: string; readonly password: string; readonly code?: string },
    options?: CallOptions,
  ): Promise<SessionTokens>;
  /** The second step of a login. */
  secondFactor(
    content: { readonly challenge: string; readonly code: string },
    options?: CallOptions,
  ): Promise<SessionTokens>;
  /** Has a code mailed. The page keeps the challenge, and sends both to `loginByCode`. */
  requestCode(
    content: { readonly email: string },
    options?: CallOptions,
  ): Promise<{ readonly challenge: string; readonly expiresIn: number }>;
  /** Has a link mailed, whose page sends its code and the challenge to `loginByCode`. */
  requestLink(
    content: { readonly email: string },
    options?: CallOptions,
  ): Promise<{ readonly challenge: string; readonly expiresIn: number }>;
  /** A login by a mailed code, or a registration, which takes the other members. @throws ComityError `second_factor_required` */
  loginByCode(
    content: { readonly challenge: string; readonly code: string; readonly [field: string]: unknown },
    options?: CallOptions,
  ): Promise<SessionTokens>;
  /** Invites a person by mail, and gives the account. */
  invite(
    content: { readonly email: string; readonly [field: string]: unknown },
    options?: CallOptions,
  ): Promise<{ readonly id: string; readonly email: string; readonly [field: string]: unknown }>;
  /** Enters an account by an invitation, with a password or a passkey. */
  acceptInvitation(
    content: { readonly code: string; readonly password?: string; readonly passkey?: FirstPasskey },
    options?: CallOptions,
  ): Promise<SessionTokens & { readonly recoveryCodes?: readonly string[] }>;
  /** Makes an account. Without tokens in the answer, its address must be verified first. */
  register(
    content: {
      readonly email: string;
      /** Absent: with a `passkey`. */
      readonly password?: string;
      readonly passkey?: FirstPasskey;
      readonly name?: string;
      readonly [field: string]: unknown;
    },
    options?: CallOptions,
  ): Promise<
    Pick<SessionTokens, 'user'> & Partial<SessionTokens & { readonly recoveryCodes: readonly string[] }>
  >;
  /** Exchanges the refresh token now. Requests do it when the access token is about to expire. */
  refresh(): Promise<void>;
  /** Ends the session on the server, or all of the account, and forgets the tokens. */
  logout(options?: CallOptions & { readonly everywhere?: boolean }): Promise<void>;
  /** @throws ComityError with the status 401 if there is no session */
  me(options?: CallOptions): Promise<Me>;
};

type CodesIn<Actions> = { [Name in keyof Actions]: PartOf<Actions[Name], 'codes'> }[keyof Actions];

/** The codes of the errors that calls of a client throw. */
export type CodesOf<A> =
  | ErrorCode
  | Extract<PartOf<A, 'codes'>, string>
  | Text<CodesIn<PartOf<A, 'actions', unknown>>>
  | Text<
      {
        [N in keyof CollectionsOf<A>]: CodesIn<PartOf<CollectionsOf<A>[N], 'actions', unknown>>;
      }[keyof CollectionsOf<A>]
    >;

/** @template A an `Api` */
export type ClientOf<A> = {
  readonly [N in Exclude<keyof CollectionsOf<A>, keyof Fixed<A>>]: CollectionClient<A, CollectionsOf<A>[N]>;
} & Fixed<A>;

type Fixed<A> = {
  readonly auth: AuthClient;
  readonly events: EventsClient<A>;
  /** The actions of no collection. */
  readonly actions: {
    readonly [Name in keyof PartOf<A, 'actions', unknown>]: ActionCall<PartOf<A, 'actions', unknown>[Name]>;
  };
  /** A collection by name: also one called `auth`, `events` or `actions`. */
  collection<N extends Text<keyof CollectionsOf<A>>>(name: N): CollectionClient<A, CollectionsOf<A>[N]>;
  /** Sends any request of the API, with everything that calls have: the credential, repetitions, errors. @returns the parsed content */
  request(
    method: string,
    path: string,
    options?: CallOptions & { readonly body?: unknown },
  ): Promise<unknown>;
  /** Uploads a file for a document to come: `create({ photo: await client.upload(file) })`. It waits for it for a day. */
  upload(file: Blob, options?: UploadOptions): Promise<{ readonly upload: string }>;
  /** True for what calls of this client throw, with the codes of the application. */
  isError(error: unknown): error is ComityError<CodesOf<A>>;
  /** Closes the connection of live lists. */
  close(): void;
};

/** @template C an `Api`, or the type of a configuration */
export type Client<C> = ClientOf<ApiOf<C>>;

/**
 * The collections as an application's own functions see them: `resources.tickets.list({ filter: { status: 'open' } })`. Hooks, actions,
 * subscribers, jobs and handlers of received messages all get the same calls, typed by the schemas.
 */
import {
  type Static,
  type TAny,
  type TArray,
  type TArrayOptions,
  type TBoolean,
  type TEnum,
  type TEnumValue,
  type TInteger,
  type TIntersect,
  type TLiteral,
  type TLiteralValue,
  type TNull,
  type TNumber,
  type TNumberOptions,
  type TObject,
  type TObjectOptions,
  type TProperties,
  type TSchema,
  type TSchemaOptions,
  type TString,
  type TStringOptions,
  type TTuple,
  type TUnion,
  type TUnknown,
  type TUnsafe,
  Type as TypeBox,
} from 'typebox';
import type { Scalar } from '../field.ts';
import type { FileReference, FileValue, WithOpenFiles } from '../file.ts';
import type { PeriodUnit } from '../period.ts';

/** The members that the server sets. Times are ISO 8601. */
export type MadeMembers = { readonly id: string; readonly createdAt: string; readonly updatedAt: string };

/**
 * A document as it is served.
 * @template T the fields that clients write: `Static<typeof schema>`
 * @template M its further members: computed fields, and `deletedAt` with soft deletion
 */
export type Document<T, M = unknown> = Readonly<T> & Readonly<M> & MadeMembers;

/**
 * The names of fields: `title`, or `address.city` within an object. Any text where the fields are not known.
 * @template T the fields that clients write; never: not known
 * @template Above the levels above, as a tuple: names end at the eighth (config/fields.ts), also those of a schema that contains itself
 */
export type FieldName<T, Above extends readonly unknown[] = readonly [0]> = [T] extends [never]
  ? string
  : {
      [Name in keyof T & string]-?: NonNullable<T[Name]> extends Scalar | readonly unknown[]
        ? Name
        : Above['length'] extends 8
          ? Name
          : NonNullable<T[Name]> extends object
            ? Name | `${Name}.${FieldName<NonNullable<T[Name]>, readonly [...Above, 0]>}`
            : Name;
    }[keyof T & string];

/** The value of a field by its name. */
type ValueOf<T, Name> = Name extends keyof T
  ? T[Name]
  : Name extends `${infer Outer}.${infer Inner}`
    ? Outer extends keyof T
      ? ValueOf<NonNullable<T[Outer]>, Inner>
      : unknown
    : unknown;

/** A value for some of the fields. */
export type ByField<Name extends string, V> = string extends Name
  ? Readonly<Record<string, V>>
  : { readonly [Each in Name]?: V };

/** Operators of a filter, as in the JSON content of a QUERY. */
type Operators<V> = {
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

type ScalarOf<V> = unknown extends V ? Scalar : ScalarWithin<NonNullable<V>>;

type ScalarWithin<V> = [V] extends [readonly (infer Item)[]] ? Extract<Item, Scalar> : Extract<V, Scalar>;

/** Values that some of the fields have. */
export type FieldValues<T> = [T] extends [never]
  ? Readonly<Record<string, Scalar>>
  : { readonly [Name in FieldName<T>]?: ScalarOf<ValueOf<T, Name>> } & {
      /** Fields of the resources that references name. */
      readonly [Path in `${TextName<T>}.${string}`]?: Scalar;
    };

/** Members that may hold the id of another resource. */
type TextName<T> = {
  [Name in keyof T & string]-?: NonNullable<T[Name]> extends string ? Name : never;
}[keyof T & string];

type Condition<V> = V | null | Operators<V>;

/** What queries may name: `deletedAt` is shown and never found. */
type Findable<T, M> = T & Omit<M, 'deletedAt'> & MadeMembers;

/** Conditions that must all hold. Fields within objects are named with dots. */
export type DocumentFilter<T, M = unknown> = string extends keyof T
  ? UnknownFilter
  : {
      readonly [Name in FieldName<Findable<T, M>>]?: Condition<ScalarOf<ValueOf<Findable<T, M>, Name>>>;
    } & {
      readonly and?: readonly DocumentFilter<T, M>[];
      readonly or?: readonly DocumentFilter<T, M>[];
      readonly not?: DocumentFilter<T, M>;
    };

type UnknownFilter = {
  readonly [name: string]: Condition<Scalar> | UnknownFilter | readonly UnknownFilter[];
};

type SortKey<T, M> = string extends keyof T ? string : FieldName<Findable<T, M>>;

/** Which documents, and in which order. */
export type DocumentSelection<T, M = unknown> = {
  readonly filter?: DocumentFilter<T, M>;
  /** Names of fields; `-` reverses. */
  readonly sort?: readonly (SortKey<T, M> | `-${SortKey<T, M>}`)[];
  /** Text to search for. */
  readonly q?: string;
};

export type DocumentQuery<T, M = unknown> = DocumentSelection<T, M> & {
  /** Documents of the page: 20 unless given, 1000 at most. */
  readonly limit?: number;
};

/** The names of fields, or by the names of results. */
type Aggregated<Name> = readonly Name[] | Readonly<Record<string, Name>>;

/** Values over the documents that match. A result is named like `count` or `avg_price`, or by the object that names it. */
export type DocumentAggregate<T, M = unknown> = Pick<DocumentSelection<T, M>, 'filter' | 'q'> & {
  readonly groupBy?: readonly (SortKey<T, M> | PeriodGroup<SortKey<T, M>>)[];
  readonly aggregate?: {
    readonly count?: true | Aggregated<SortKey<T, M>>;
  } & { readonly [Of in 'sum' | 'avg' | 'min' | 'max']?: Aggregated<SortKey<T, M>> };
  /** A filter over the results. */
  readonly having?: Readonly<Record<string, unknown>>;
  /** Names of results; `-` reverses. */
  readonly sort?: readonly string[];
  readonly limit?: number;
};

/** Groups times by the day, week, month or year that they are in: the result is its first day, `2026-03-30`. */
export type PeriodGroup<Name extends string = string> = {
  readonly by: Name;
  readonly unit: PeriodUnit;
  /** A name of the IANA database such as `Europe/Berlin`. Default UTC. */
  readonly timeZone?: string;
  /** The name of the result. Default: that of the field. */
  readonly as?: string;
};

/**
 * A merge patch (RFC 7396), also within objects: null removes a member that may be absent, and gives one with a default its default.
 * @template N the fields of a new document
 */
export type MergePatch<N> = {
  readonly [Name in keyof N]?:
    | PatchedValue<N[Name]>
    | (Record<never, never> extends Pick<N, Name> ? null : never);
};

type PatchedValue<V> = [V, FileReference] extends [FileReference | undefined, V] ? V : MergedValue<V>;

type MergedValue<V> = V extends Scalar | readonly unknown[] | Uint8Array
  ? V
  : V extends object
    ? MergePatch<V>
    : V;

type CreateOptions = {
  /** The id of the new document, in collections where PUT creates. */
  readonly id?: string;
  /** The owning principal. Default: none, or the caller of a hook or an action. */
  readonly owner?: string;
};

/**
 * The calls on one collection, by all its rules: schema, references, unique fields, hooks, events. A call that would be refused with an
 * error response rejects with `ResourceRefused`. Files of the documents can be opened.
 * @template T the fields of the schema @template M further members of its documents @template N the fields of a new document
 * @template P a patch
 */
export type CollectionCalls<T, M = unknown, N = T, P = MergePatch<N>> = {
  /**
   * Undefined where there is no such document. The unit depends on what was read: if another change of the document is committed first, the
   * function runs again.
   */
  get(id: string): Promise<Document<WithOpenFiles<T>, M> | undefined>;
  /**
   * One page, like a QUERY with this JSON content: 20 documents unless `limit` says otherwise, and 1000 at most. It is of the committed documents
   * and what the function has written so far.
   */
  list(query?: DocumentQuery<T, M>): Promise<readonly Document<WithOpenFiles<T>, M>[]>;
  /**
   * Every document, page by page as it is read: `for await (const ticket of resources.tickets.all({ filter }))`. The pages are those of `list`.
   * A document that another writer moves in the order meanwhile may be passed over or come twice; in the default order none moves.
   */
  all(selection?: DocumentSelection<T, M>): AsyncIterable<Document<WithOpenFiles<T>, M>>;
  /**
   * Computes values over the documents that match, in groups, like an aggregate QUERY: up to 1000 groups unless `limit` says otherwise. It is of the
   * committed documents alone, and fails in a function that has written some of the collection.
   */
  aggregate(query: DocumentAggregate<T, M>): Promise<readonly Readonly<Record<string, Scalar>>[]>;
  create(fields: N, options?: CreateOptions): Promise<Document<WithOpenFiles<T>, M>>;
  update(id: string, patch: P): Promise<Document<WithOpenFiles<T>, M>>;
  replace(id: string, fields: N): Promise<Document<WithOpenFiles<T>, M>>;
  delete(id: string): Promise<void>;
};

/** What is known of a collection: `{ schema: typeof Ticket, computed: typeof computedFields, softDelete: true }`, or its declaration. */
type Declared = { readonly schema: TObject };

/** The names that a declaration has at one of its members: `stamp`, `hidden`. Never where it names none, or any. */
type NamesAt<X, Member extends string> = X extends { readonly [Each in Member]?: infer Named }
  ? NonNullable<Named> extends readonly (infer Name extends string)[]
    ? Literal<Name>
    : Literal<keyof NonNullable<Named> & string>
  : never;

type Literal<Name extends string> = string extends Name ? never : Name;

/** The fields that a function gives for a new document: one that the server stamps may be left out. */
type NewFieldsOf<X extends Declared> = NewFields<X['schema'], never, NamesAt<X, 'stamp'>>;

/** A patch of a document: what is fixed at creation is in none. */
type PatchOf<X extends Declared> = MergePatch<Omit<NewFieldsOf<X>, FixedNames<X>>>;

type FixedNames<X> =
  | NamesAt<X, 'unpatchable'>
  | (X extends { readonly tenantField?: infer Name extends string | undefined }
      ? Literal<NonNullable<Name>>
      : never);

/** The members of a collection's documents beside the fields that clients write and those of every document. */
export type FurtherMembers<K, Soft> = {
  // Documents from before the declaration of a computed field are without it until they are written.
  readonly [Name in keyof K as string extends Name ? never : Name]?: K[Name] extends {
    readonly schema: infer S extends TSchema;
  }
    ? Static<S>
    : unknown;
} & (Soft extends true ? { readonly deletedAt?: string } : unknown);

type FurtherMembersOf<X> = FurtherMembers<
  X extends { readonly computed?: infer K } ? NonNullable<K> : unknown,
  X extends { readonly softDelete?: infer Soft } ? NonNullable<Soft> : false
>;

/** The documents of a collection. @template X a TypeBox object, a declaration, or the type of fields */
export type DocumentOf<X> = X extends TObject
  ? Document<Static<X>>
  : X extends Declared
    ? Document<Static<X['schema']>, FurtherMembersOf<X>>
    : Document<X>;

type CallsOf<X> = X extends TObject
  ? CollectionCalls<Static<X>, unknown, NewFields<X>>
  : X extends Declared
    ? CollectionCalls<Static<X['schema']>, FurtherMembersOf<X>, NewFieldsOf<X>, PatchOf<X>>
    : CollectionCalls<X>;

/**
 * The calls on each collection, by its name: `Handler<ResourcesOf<{ tickets: typeof Ticket }>>`.
 * @template Shapes by the names of collections: TypeBox objects, declarations (for their computed fields), or the types of fields
 */
export type ResourcesOf<Shapes> = {
  readonly [Name in Exclude<keyof Shapes, 'users'>]: CallsOf<Shapes[Name]>;
} & Accounts<FieldsOfAccounts<Shapes>>;

/** An account, without its password. Absent members are unknown. */
export type Account = {
  readonly email: string;
  readonly name?: string;
  readonly emailVerified: boolean;
  readonly roles: readonly string[];
  readonly scopes: readonly string[];
  readonly tenant?: string;
  readonly disabled: boolean;
};

/** What a function gives for a new account; the rest has the defaults of `POST /users`. */
type NewAccount<F> = Pick<Account, 'email'> &
  Partial<Omit<Account, 'email'>> &
  (unknown extends F ? Readonly<Record<string, unknown>> : F);

type AccountPatch<F> = unknown extends F
  ? Readonly<Record<string, unknown>>
  : MergePatch<Partial<Account> & F>;

/**
 * Accounts are read like documents, and functions create and change them, but none that administers the program. The calls that are never
 * there let `resources` of known collections stand where those of any collection are expected.
 * @template F the fields of the application
 */
type Accounts<F = unknown> = {
  readonly users: Pick<CollectionCalls<Account & F>, 'get' | 'list' | 'all' | 'aggregate'> & {
    create(account: NewAccount<F>): Promise<Document<Account & F>>;
    update(id: string, patch: AccountPatch<F>): Promise<Document<Account & F>>;
  } & {
    readonly [Name in 'replace' | 'delete']: never;
  };
};

/** The fields of accounts among schemas: those at the name `users`. */
type FieldsOfAccounts<Shapes> = Shapes extends { readonly users: infer S }
  ? S extends TObject
    ? Static<S>
    : unknown
  : AccountFieldsDeclared;

type AccountFieldsDeclared = Schemas extends { readonly users: infer S extends TObject }
  ? Static<S>
  : unknown;

/** The fields of an account as a principal has them. Without `users` in `Schemas`: any. */
export type AccountFields = unknown extends AccountFieldsDeclared
  ? Readonly<Record<string, unknown>>
  : Partial<Readonly<AccountFieldsDeclared>>;

/**
 * The schemas of a project's collections, and at `users` that of the fields of its accounts. A function declared within one collection cannot infer the others, so a project says it once:
 * `declare module 'comity' { interface Schemas { tickets: typeof Ticket } }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: a project adds to it, and only interfaces can be added to
export interface Schemas {}

/** Without `Schemas` any collection with any fields. */
export type Resources = [keyof Schemas] extends [never]
  ? { readonly [name: string]: CollectionCalls<Record<string, unknown>> } & Accounts
  : ResourcesOf<Schemas>;

// Which members a new document may leave out. TypeBox drops a default from the type of a schema; `Type` of this package is TypeBox's own,
// typed so that the type keeps it: `create({ title })` is accepted where `status` has a default.

type Defaulted = { readonly default: unknown };

/** Each is an overload before that of TypeBox. */
type DefaultedBuilders = {
  Any(options: TSchemaOptions & Defaulted): TAny & Defaulted;
  Array<Item extends TSchema>(items: Item, options: TArrayOptions & Defaulted): TArray<Item> & Defaulted;
  Boolean(options: TSchemaOptions & Defaulted): TBoolean & Defaulted;
  Enum<Values extends TEnumValue[]>(
    values: readonly [...Values],
    options: TSchemaOptions & Defaulted,
  ): TEnum<Values> & Defaulted;
  Integer(options: TNumberOptions & Defaulted): TInteger & Defaulted;
  Literal<Value extends TLiteralValue>(
    value: Value,
    options: TSchemaOptions & Defaulted,
  ): TLiteral<Value> & Defaulted;
  Intersect<Types extends TSchema[]>(
    types: [...Types],
    options: TSchemaOptions & Defaulted,
  ): TIntersect<Types> & Defaulted;
  Null(options: TSchemaOptions & Defaulted): TNull & Defaulted;
  Number(options: TNumberOptions & Defaulted): TNumber & Defaulted;
  Object<Properties extends TProperties>(
    properties: Properties,
    options: TObjectOptions & Defaulted,
  ): TObject<Properties> & Defaulted;
  Record<Key extends TSchema, Value extends TSchema>(
    key: Key,
    value: Value,
    options: TObjectOptions & Defaulted,
  ): ReturnType<typeof TypeBox.Record<Key, Value>> & Defaulted;
  String(options: TStringOptions & Defaulted): TString & Defaulted;
  Tuple<Types extends TSchema[]>(
    types: [...Types],
    options: TArrayOptions & Defaulted,
  ): TTuple<Types> & Defaulted;
  Union<Types extends TSchema[]>(
    anyOf: [...Types],
    options: TSchemaOptions & Defaulted,
  ): TUnion<Types> & Defaulted;
  Unknown(options: TSchemaOptions & Defaulted): TUnknown & Defaulted;
  Unsafe<V>(schema: TSchema & Defaulted): TUnsafe<V> & Defaulted;
};

type Builders = Omit<typeof TypeBox, keyof DefaultedBuilders> & {
  readonly [Name in keyof DefaultedBuilders]: DefaultedBuilders[Name] & (typeof TypeBox)[Name];
};

export const Type: Builders = TypeBox as Builders;

type DefaultedName<P> = { [Name in keyof P]: P[Name] extends Defaulted ? Name : never }[keyof P];

type Flat<T> = { [Name in keyof T]: T[Name] };

/**
 * The fields that a caller gives for a new document: those with a default may be left out, also within objects.
 * @template S the schema of the collection @template Closed names of members that no caller gives
 * @template Filled names of members that the server gives to callers who leave them out
 */
export type NewFields<S extends TObject, Closed = never, Filled = never> =
  S extends TObject<infer P extends TProperties>
    ? WithoutDefaulted<Omit<Static<S>, Closed & string>, P, Filled>
    : never;

type WithoutDefaulted<T, P, Filled = never> = Flat<
  {
    [Name in keyof T as Name extends DefaultedName<P> | Filled ? never : Name]: Given<
      T[Name],
      Name extends keyof P ? P[Name] : unknown
    >;
  } & {
    [Name in keyof T & (DefaultedName<P> | Filled)]?: Given<
      T[Name],
      Name extends keyof P ? P[Name] : unknown
    >;
  }
>;

/** A file is given by its reference, within lists too. */
type Given<V, S> =
  IsOf<V, FileValue> extends true
    ? FileReference | Extract<V, undefined>
    : IsOf<V, readonly FileValue[]> extends true
      ? FileReference[] | Extract<V, undefined>
      : S extends TObject<infer P extends TProperties>
        ? WithoutDefaulted<V, P>
        : V;

/** False for `any`, and for what has no value beside undefined. */
type IsOf<V, W> = 0 extends 1 & V
  ? false
  : [Exclude<V, undefined>] extends [never]
    ? false
    : [V] extends [W | undefined]
      ? true
      : false;

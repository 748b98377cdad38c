/**
 * The collections as an application's own functions see them: `resources.tickets.list({ filter: { status: 'open' } })`. Hooks, actions,
 * subscribers, jobs and handlers of received messages all get the same calls, typed by the schemas.
 */
import type { Static, TObject } from 'typebox';
import type { Scalar } from '../field.ts';

/** The members that the server sets. Times are ISO 8601. */
export type MadeMembers = { readonly id: string; readonly createdAt: string; readonly updatedAt: string };

/** A document as it is served. @template T the fields that clients write: `Static<typeof schema>` */
export type Document<T> = Readonly<T> & MadeMembers;

/**
 * The names of fields: `title`, or `address.city` within an object. Any text where the fields are not known.
 * @template T the fields that clients write; never: not known
 */
export type FieldName<T> = [T] extends [never]
  ? string
  : {
      [Name in keyof T & string]-?: NonNullable<T[Name]> extends Scalar | readonly unknown[]
        ? Name
        : NonNullable<T[Name]> extends object
          ? Name | `${Name}.${FieldName<NonNullable<T[Name]>>}`
          : Name;
    }[keyof T & string];

/** A value for some of the fields. */
export type ByField<Name extends string, V> = string extends Name
  ? Readonly<Record<string, V>>
  : { readonly [Each in Name]?: V };

/** Operators of a filter, as in the JSON content of a QUERY. */
export type Operators<V> = {
  readonly eq?: V | null;
  readonly ne?: V | null;
  readonly gt?: V;
  readonly gte?: V;
  readonly lt?: V;
  readonly lte?: V;
  readonly in?: readonly (V | null)[];
  readonly like?: string;
};

type ScalarOf<V> = unknown extends V
  ? Scalar
  : [V] extends [readonly (infer Item)[]]
    ? Extract<Item, Scalar>
    : Extract<V, Scalar>;

/** Values that some of the fields have. Of fields within objects the names alone are checked. */
export type FieldValues<T> = [T] extends [never]
  ? Readonly<Record<string, Scalar>>
  : {
      readonly [Name in FieldName<T>]?: Name extends keyof T ? ScalarOf<NonNullable<T[Name]>> : Scalar;
    };

type Condition<V> = V | null | Operators<V>;

/** Conditions that must all hold. Fields within objects are named with dots. */
export type DocumentFilter<T> = {
  readonly [Name in keyof Document<T>]?: Condition<ScalarOf<NonNullable<Document<T>[Name]>>>;
} & {
  readonly [path: `${string}.${string}`]: Condition<Scalar>;
} & {
  readonly and?: readonly DocumentFilter<T>[];
  readonly or?: readonly DocumentFilter<T>[];
  readonly not?: DocumentFilter<T>;
};

type SortKey<T> = keyof Document<T> & string;

export type DocumentQuery<T> = {
  readonly filter?: DocumentFilter<T>;
  /** Names of fields; `-` reverses. */
  readonly sort?: readonly (SortKey<T> | `-${SortKey<T>}`)[];
  /** Documents of the page. */
  readonly limit?: number;
  /** Text to search for. */
  readonly q?: string;
};

/** A merge patch (RFC 7396): null removes a member. */
export type MergePatch<T> = { readonly [Name in keyof T]?: T[Name] | null };

export type CreateOptions = {
  /** The id of the new document, in collections where PUT creates. */
  readonly id?: string;
  /** The owning principal. Default: nobody, or the caller of a hook or an action. */
  readonly owner?: string;
};

/**
 * The calls on one collection, by all its rules: schema, references, unique fields, hooks, events. A call that would be refused with an
 * error response rejects with `ResourceRefused`.
 */
export type CollectionCalls<T> = {
  /**
   * Undefined where there is no such document. The unit depends on what was read: if another change of the document is committed first, the
   * function runs again.
   */
  get(id: string): Promise<Document<T> | undefined>;
  /** One page, like a QUERY with this JSON content, of the committed documents and what the function has written so far. */
  list(query?: DocumentQuery<T>): Promise<readonly Document<T>[]>;
  create(fields: T, options?: CreateOptions): Promise<Document<T>>;
  update(id: string, patch: MergePatch<T>): Promise<Document<T>>;
  replace(id: string, fields: T): Promise<Document<T>>;
  delete(id: string): Promise<void>;
};

/**
 * The calls on each collection, by its name: `Handler<ResourcesOf<{ tickets: typeof Ticket }>>`.
 * @template Shapes TypeBox objects, or the types of fields, by the names of collections
 */
export type ResourcesOf<Shapes> = {
  readonly [Name in keyof Shapes]: CollectionCalls<
    Shapes[Name] extends TObject ? Static<Shapes[Name]> : Shapes[Name]
  >;
} & Accounts;

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

/** Accounts are read like documents. They are written by the requests of docs/guides/accounts.md only. */
export type Accounts = { readonly users: Pick<CollectionCalls<Account>, 'get' | 'list'> };

/**
 * The schemas of a project's collections. A function declared within one collection cannot infer the others, so a project says it once:
 * `declare module 'comity' { interface Schemas { tickets: typeof Ticket } }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: a project adds to it, and only interfaces can be added to
export interface Schemas {}

/** Without `Schemas` any collection with any fields. */
export type Resources = [keyof Schemas] extends [never]
  ? { readonly [name: string]: CollectionCalls<Record<string, unknown>> } & Accounts
  : ResourcesOf<Schemas>;

/**
 * A collection (§2, §4): a user's declaration, and its checked form with all defaults. `config/collections.ts` finds
 * mistakes in a declaration; this file has its meaning.
 */
import type { Static, TObject, TSchema } from 'typebox';
import { type Access, type Rule, visibleTo } from './access.ts';
import { type Field, type Fields, ownerField, tagField } from './field.ts';
import type { FileFields, WithOpenFiles } from './file.ts';
import type { Filter } from './filter.ts';
import type { ActionDeclaration } from './logic/actions.ts';
import type {
  ByField,
  FieldName,
  FurtherMembers,
  MadeMembers,
  NewFields,
  Schemas,
} from './logic/collection-calls.ts';
import type { Hooks } from './logic/logic.ts';
import type { Presentation, PresentationDeclaration } from './presentation.ts';
import type { Principal } from './principal.ts';
import { indexedText, type SearchIndex } from './search/search-index.ts';
import type { SearchLanguage } from './search/words.ts';

/** Body formats of a collection besides merge patch and JSON Patch, which all accept. */
export type BodyFormat = 'json' | 'form' | 'multipart' | 'text';

export type CollectionReference = {
  /** Property that holds the id. */
  readonly field: string;
  /** Name of the collection that it refers to. */
  readonly collection: string;
  /** Member of the 409 body that counts the dependants: `productCount` (§2.2). */
  readonly countAs: string;
  readonly onDelete: OnDelete;
};

/**
 * What a deletion does to the documents that refer to the deleted one (§4.7): they prevent it, are deleted too, or lose
 * the reference.
 */
export type OnDelete = 'restrict' | 'cascade' | 'setNull';

/** An indexed text and its longest length: see config/collections.ts. */
export type TextBound = {
  /** Member names from the root of the representation. */
  readonly path: readonly string[];
  readonly bytesMax: number;
};

export type Deprecation = {
  /** When the collection became deprecated, ISO 8601 (RFC 9745). */
  readonly since: string;
  /** When it may stop responding, ISO 8601; not before `since` (RFC 8594). */
  readonly sunset?: string;
  /** A page for people about the change, sent as Link rel=deprecation. */
  readonly link?: string;
};

/** The schemas of computed fields, by their names. */
export type ComputedSchemas = Readonly<Record<string, TSchema>>;

/**
 * @template T the fields of the schema; never: not known
 * @template R the calls on all collections; never: not known
 * @template K the schemas of its computed fields
 * @template N the fields of a new document
 * @template Soft the value of `softDelete`
 */
type CollectionParts<
  T = never,
  R = never,
  K extends ComputedSchemas = ComputedSchemas,
  N = T,
  Soft extends boolean = boolean,
> = PresentationDeclaration<T, Member<T> | Computed<K>> & {
  readonly description?: string;
  readonly access?: Partial<Access<T>>;
  /** Fields that only permitted principals may write; for others they are unpatchable. */
  readonly readOnly?: ByField<Member<T>, Rule<T>>;
  /** Fields that only permitted principals see; for others they do not exist. */
  readonly hidden?: ByField<Member<T> | Computed<K>, Rule<T>>;
  /** The string field with the tenant of a resource, for the rule `tenant`; set from its creator. */
  readonly tenantField?: TextMember<T>;
  /** Respond 404 instead of 403 if the principal may not read the resource. Default true. */
  readonly conceal?: boolean;
  /** PUT creates at a client-chosen id. Default false. */
  readonly putCreates?: boolean;
  /** DELETE sets `deletedAt` and hides the resource (§4.7.4). Default false. */
  readonly softDelete?: Soft;
  /** 428 for PUT, PATCH and DELETE of an existing resource without If-Match (RFC 6585). Default false. */
  readonly requireMatch?: boolean;
  /** One index each: a field, or several in order. */
  readonly indexes?: readonly (IndexName<T> | Computed<K> | readonly (IndexName<T> | Computed<K>)[])[];
  /** A field, or several whose values together are unique, unless one is null: `['tenantId', 'sku']`, `{ fields: ['email'], ignoreCase: true }`. */
  readonly unique?: readonly Unique<FieldName<T> | Computed<K>>[];
  /** Fields set at creation that PATCH and PUT may not change. */
  readonly unpatchable?: readonly Member<T>[];
  readonly references?: ByField<
    TextMember<T>,
    { readonly collection: CollectionName; readonly countAs?: string; readonly onDelete?: OnDelete }
  >;
  /** Body formats. Default JSON, form and multipart. */
  readonly formats?: readonly BodyFormat[];
  /** The string field that a text/plain body sets; needs the format `text`. */
  readonly textField?: TextMember<T>;
  /**
   * Fields whose words an index holds for `q`, and the language of their stems. Default: `q` looks for parts of words in every string that
   * all may read, and reads each document. An empty list: no `q`.
   */
  readonly search?: readonly SearchName<T, K>[] | SearchDeclaration<SearchName<T, K>>;
  /** Cache-Control of its reads. Default `no-cache` for public reads, `private, no-cache` otherwise. */
  readonly cacheControl?: string;
  /** Who sees which principal caused an event, besides administrators and that principal: none, or all who may read it. Default none. */
  readonly actors?: 'administrators' | 'readers';
  readonly deprecation?: Deprecation;
  /** Complete bodies that a POST would accept; shown in the OpenAPI document. */
  readonly examples?: readonly ([T] extends [never] ? Readonly<Record<string, unknown>> : N)[];
  /** Fields that every write computes from the others, and no client writes. */
  readonly computed?: { readonly [Name in keyof K]: ComputedField<T, K[Name]> };
  /** Functions within its writes and reads. */
  readonly hooks?: Hooks<T, R, FurtherMembers<{ [Name in keyof K]: ComputedField<T, K[Name]> }, Soft>>;
  /** Fields that the server sets from the request that writes, and no client writes: `{ authorId: 'principal' }`. */
  readonly stamp?: ByField<TextMember<T>, StampDeclaration>;
  /** Requests on the collection or on its members, by their names in URLs. */
  readonly actions?: Readonly<Record<string, ActionDeclaration<'member' | 'collection', WithOpenFiles<T>>>>;
};

/** The argument of `collection(...)`; everything but the schema has a default. */
export type CollectionDeclaration<
  S extends TObject = TObject,
  T = never,
  R = never,
  K extends ComputedSchemas = ComputedSchemas,
  Soft extends boolean = boolean,
> = CollectionParts<T, R, K, NewFields<S>, Soft> & {
  /** TypeBox object of the fields that clients write; the server sets `id` and the three times. */
  readonly schema: S;
};

/** What `computed` returns. @template T the fields that clients write @template S the schema of the field */
export type ComputedField<T = never, S extends TSchema = TSchema> = {
  readonly schema: S;
  readonly compute: (fields: T) => unknown;
};

/**
 * A field that is computed from the others with every write, stored with them, and found and indexed like them.
 * @param compute must be pure and synchronous; undefined: the member is absent
 */
export function computed<S extends TSchema, T = Record<string, unknown>>(
  schema: S,
  compute: (fields: T) => Static<S> | undefined,
): ComputedField<T, S> {
  return { schema, compute };
}

/** A member at the top level. */
type Member<T> = [T] extends [never] ? string : keyof T & string;

/** A member that holds a text. */
export type TextMember<T> = MemberOf<T, string>;

/** A member that holds a list of texts. */
type TextsMember<T> = MemberOf<T, readonly (string | null)[]>;

type MemberOf<T, V> = [T] extends [never]
  ? string
  : { [Name in keyof T & string]-?: NonNullable<T[Name]> extends V ? Name : never }[keyof T & string];

type SearchName<T, K> = TextMember<T> | TextsMember<T> | Computed<K>;

/** @template N the names of fields */
type SearchDeclaration<N extends string = string> = {
  readonly fields: readonly N[];
  /** Finds `printers` by `printer`. Default: words are found as they are written, apart from case and accents. */
  readonly language?: SearchLanguage;
};

/** @template N the names of fields */
export type Unique<N extends string = string> =
  | N
  | readonly N[]
  | { readonly fields: readonly N[]; readonly ignoreCase?: boolean };

/** The names are not a source of inference for the schemas. */
type Computed<K> = NoInfer<keyof K & string>;

/** Any name where the project has not said which there are. */
type CollectionName = [keyof Schemas] extends [never] ? string : (keyof Schemas & string) | 'users';

type IndexName<T> = FieldName<T> | keyof MadeMembers;

export type Collection = {
  readonly name: string;
  readonly description: string;
  /** With the computed fields. */
  readonly schema: TObject;
  readonly computed?: ReadonlyMap<string, ComputedField['compute']>;
  readonly fields: Fields;
  readonly access: Access;
  /** Some of its access rules may look at resources that its references name. Absent: none does. */
  readonly relates?: boolean;
  readonly readOnly: ReadonlyMap<string, Rule>;
  readonly hidden: ReadonlyMap<string, Rule>;
  readonly tenantField: string | undefined;
  readonly conceal: boolean;
  readonly putCreates: boolean;
  /** Names below its path that its operations and actions have, and no document. */
  readonly takenIds: readonly string[];
  readonly softDelete: boolean;
  readonly requireMatch: boolean;
  readonly indexes: readonly (readonly Field[])[];
  /** Each list: together. */
  readonly unique: readonly (readonly Field[])[];
  readonly textBounds: readonly TextBound[];
  readonly unpatchable: ReadonlySet<string>;
  readonly required: ReadonlySet<string>;
  readonly references: readonly CollectionReference[];
  /** Its fields that hold files. Absent: none does. */
  readonly files?: FileFields;
  /** References of other collections to this one, which can prevent a deletion. */
  readonly dependants: readonly (CollectionReference & { readonly from: string })[];
  /** Itself and those that it refers to, as far as a deletion in several units may mark their documents. Absent: none. */
  readonly marked?: ReadonlySet<string>;
  readonly formats: ReadonlySet<BodyFormat>;
  readonly textField: string | undefined;
  readonly searchFields: readonly string[];
  /** Set if the declaration names the fields: an index of their words then serves `q`. */
  readonly searchIndex?: SearchIndex;
  readonly cacheControl: string;
  /** Absent: administrators. */
  readonly actors?: 'administrators' | 'readers';
  readonly deprecation: Deprecation | undefined;
  readonly examples: readonly Readonly<Record<string, unknown>>[];
  /** Absent: the declaration says nothing of it. */
  readonly presentation?: Presentation | undefined;
  readonly hooks?: Hooks<never, never>;
  readonly stamp?: ReadonlyMap<string, Stamp> | undefined;
};

/** The name of the owner where administrators see it: imported and exported documents, and queries. */
export function ownerMember({ schema }: Pick<Collection, 'schema'>): string {
  return Object.hasOwn(schema.properties, 'owner') ? '$owner' : 'owner';
}

/** The fields that an administrator may name: with the owner, which is no member of the representation (§5.1.8). */
export function withOwner({ schema, fields }: Pick<Collection, 'schema' | 'fields'>): Fields {
  const name = ownerMember({ schema });
  return fields.has(name) ? fields : new Map([...fields, [name, { ...ownerField, name }]]);
}

/** Names the entity tag in `fields`: `etag`, or `$etag` if the collection declares a field of that name. */
export function tagFieldOf({ schema }: Pick<Collection, 'schema'>): Field {
  return Object.hasOwn(schema.properties, tagField.name)
    ? { ...tagField, name: `$${tagField.name}` }
    : tagField;
}

/** Folds case and compatibility forms, so that both stores find the same text by plain substring search. */
export function foldText(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

/** The text that `q` searches: the words of an index, or the folded text. */
export function searchTextOf(
  { searchFields, searchIndex }: Pick<Collection, 'searchFields' | 'searchIndex'>,
  resource: Readonly<Record<string, unknown>>,
): string | null {
  return searchIndex === undefined ? searchText(searchFields, resource) : indexedText(searchIndex, resource);
}

/** The folded search fields, one a line so that no term matches across two. */
export function searchText(
  fields: readonly string[],
  resource: Readonly<Record<string, unknown>>,
): string | null {
  if (fields.length === 0) return null;
  let text = '';
  for (const name of fields) {
    const value = resource[name];
    if (typeof value === 'string') text += `${value}\n`;
    else if (Array.isArray(value))
      for (const item of value) if (typeof item === 'string') text += `${item}\n`;
  }
  return foldText(text);
}

/** The field that a rule or a reference of the collection names. */
export function fieldNamed({ name: of, fields }: Pick<Collection, 'name' | 'fields'>, name: string): Field {
  const field = fields.get(name);
  if (field === undefined) throw new Error(`the rule of ${of} names an unknown field ${name}`);
  return field;
}

/** The resources of the collection that a rule for reading opens to the principal. */
export function visibleWhere(
  collection: Pick<Collection, 'name' | 'fields'>,
  rule: Rule,
  principal: Principal,
): Filter {
  return visibleTo(rule, principal, ownerField, (name) => fieldNamed(collection, name));
}

// Stamped fields of a collection (§2.9): members that the server sets from the request that writes, and no client writes.

/** The principal's id, its tenant, or the time of the write in ISO 8601. */
export type StampValue = 'principal' | 'tenant' | 'time';

export const stampValues: readonly StampValue[] = ['principal', 'tenant', 'time'];

/** @param on `create`: set once; `update`: set by every write, also the one that creates */
export type Stamp = { readonly value: StampValue; readonly on: 'create' | 'update' };

/** The value alone is set at creation. */
export type StampDeclaration = StampValue | { readonly value: StampValue; readonly on?: 'create' | 'update' };

export function resolveStamps(
  declared: Readonly<Record<string, StampDeclaration>> | undefined,
): ReadonlyMap<string, Stamp> | undefined {
  const entries = Object.entries(declared ?? {});
  if (entries.length === 0) return undefined;
  return new Map(
    entries.map(([name, stamp]) => [
      name,
      typeof stamp === 'string'
        ? { value: stamp, on: 'create' }
        : { value: stamp.value, on: stamp.on ?? 'create' },
    ]),
  );
}

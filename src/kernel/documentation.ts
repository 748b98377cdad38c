/**
 * Types for the part of the OpenAPI document that describes a resource and its operations. Handlers declare it beside
 * their code, and src/openapi reads it there. It omits what the operation already declares: media types, support of
 * Idempotency-Key and respond-async, and permissions.
 */
import type { AnswerName } from '../http/conduct/answers.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { FieldName } from '../http/response-fields.ts';
import type { Action, Rule } from '../model/access.ts';
import type { Collection } from '../model/collection.ts';
import type { Fields } from '../model/field.ts';

/**
 * A part of the OpenAPI document, as plain JSON. test/openapi checks the whole document against the official schemas,
 * so the parts have no TypeScript types of their own.
 */
export type Item = Readonly<Record<string, unknown>>;

/** Media types of content, each with a Media Type Object. */
export type Content = Readonly<Record<string, Item>>;

export type Tag = {
  readonly name: string;
  readonly description: string;
  /** Its resources are in the document for operators. Absent: in that of the application. */
  readonly audience?: 'operator';
};

/** A resource with a description of its own. */
export type PathDocumentation = {
  /** `RealtimeTickets`: no schema of a collection has it. */
  readonly name: string;
  readonly tag: Tag;
  readonly parameters?: readonly Item[] | undefined;
};

/** A path of a collection; the collection's declaration describes it. */
export type CollectionDocumentation = {
  readonly part: 'collection' | 'member' | 'bulk' | 'bulk-delete' | 'import';
  readonly collection: Collection;
  readonly limits: CollectionLimits;
} & CollectionVariant;

/** Deviations of a built-in collection from the standard description. */
export type CollectionVariant = {
  /** Absent: derived from the name of the collection. */
  readonly names?: CollectionNames;
  /** See `Tag`. */
  readonly audience?: 'operator';
  /** The prefix of ids in examples. */
  readonly idPrefix?: string;
  /** Administrators may name the owner of its resources. */
  readonly owned?: boolean;
  /** Changes the standard description of an operation. */
  readonly revise?: Readonly<
    Partial<Record<CollectionOperation, (standard: OperationDocumentation) => OperationDocumentation>>
  >;
};

export type CollectionOperation =
  | 'list'
  | 'create'
  | 'query'
  | 'read'
  | 'replace'
  | 'patch'
  | 'patch-many'
  | 'remove'
  | 'bulk'
  | 'export'
  | 'import'
  | 'bulk-delete';

/** The operations of a built-in collection whose members are made, changed and removed one by one. */
export const memberwiseOperations: readonly CollectionOperation[] = [
  ...(['list', 'create', 'query', 'read', 'patch', 'remove'] as const),
];

/** The names of a collection and its members, for schemas and operation ids, and for sentences. */
export type CollectionNames = {
  readonly singular: string;
  readonly plural: string;
  /** `an order line` */
  readonly one: string;
  /** `order lines` */
  readonly many: string;
};

export type OperationDocumentation = {
  readonly id: string;
  readonly summary: string;
  readonly description?: string | undefined;
  /** The application's action that it is, by its name, and what it is on. */
  readonly action?: { readonly name: string; readonly on: 'member' | 'collection' | 'base' } | undefined;
  /** It is for operators, whatever its tag says. */
  readonly audience?: 'operator';
  /** Query parameters, and header fields that no other operation has. */
  readonly parameters?: readonly Item[] | undefined;
  /** A paged list, with `page` and `cursor`; with limits also `limit`. */
  readonly paged?: 'as-stored' | ListLimits | undefined;
  /** A paged list with filters on these fields, sorting and field selection. */
  readonly listed?:
    | { readonly fields: Fields; readonly tag?: string; readonly limits: ListLimits }
    | undefined;
  readonly takes?: Content | undefined;
  /** Content of the responses by answer; an answer that is missing here has none. */
  readonly gives?: Readonly<Partial<Record<AnswerName, Content>>> | undefined;
  /** Some responses have no content. */
  readonly silence?: 'sometimes' | undefined;
  /** Further fields of 200 with a representation. */
  readonly representationFields?: readonly FieldName[] | undefined;
  /** Further fields of responses to a change, and of a 303 to a read. */
  readonly madeFields?: readonly FieldName[] | undefined;
  /** The accepted security schemes; absent: all. */
  readonly schemes?: readonly SchemeName[] | undefined;
  /** Codes that its stages refuse with, besides those for content, conditions and credentials. */
  readonly codes?: readonly ProblemCode[] | undefined;
  /** Codes of the application's own, with their statuses. */
  readonly ownCodes?: readonly OwnCode[] | undefined;
  /** It creates a resource: 201. */
  readonly creates?: 'always' | 'sometimes' | undefined;
  /** It is performed after the response: 202. */
  readonly queues?: 'always' | 'sometimes' | undefined;
  /** The result of a read is at another URI: 303. */
  readonly redirects?: 'always' | 'sometimes' | undefined;
  /** The member of a collection whose access rules decide. */
  readonly member?: MemberAccess | undefined;
  /** Further possible standings: missing; hidden from the caller; visible but not permitted. */
  readonly mayBeMissing?: boolean | undefined;
  readonly mayBeHidden?: boolean | undefined;
  readonly mayBeClosed?: boolean | undefined;
};

export type OwnCode = { readonly code: string; readonly status: number };

export type MemberAccess = {
  readonly collection: Collection;
  readonly action: Action;
  /** In place of the rule of the collection for the action. */
  readonly rule?: Rule;
};

/** Names of the security schemes in the document. */
export type SchemeName = 'bearer' | 'basic' | 'apiKeyHeader' | 'apiKeyQuery' | 'cookieAuth';

export type CollectionLimits = ListLimits & {
  readonly bulkDeleteIdsMax: number;
  readonly expandDepthMax: number;
  readonly expandPathsMax: number;
  readonly bulkItemsMax: number;
};

export type ListLimits = { readonly listLimitDefault: number; readonly listLimitMax: number };

const schemaName: unique symbol = Symbol('schemaName');
const representedCollection: unique symbol = Symbol('representedCollection');

/** Names a schema: the document contains it once and refers to it. One name must always have the same schema. */
export function named<S extends object>(name: string, schema: S): S {
  return { ...schema, [schemaName]: name };
}

/** Refers to the schema of the collection's representations. */
export function representationOf({ name }: Pick<Collection, 'name'>): Item {
  return { [representedCollection]: name };
}

/** Returns the mark that `named` or `representationOf` put on a schema; undefined for any other. */
export function referenceIn(
  schema: object,
): { readonly name: string } | { readonly collection: string } | undefined {
  if (schemaName in schema) return { name: String(schema[schemaName]) };
  if (representedCollection in schema) return { collection: String(schema[representedCollection]) };
  return undefined;
}

export function pathParameter(name: string, description: string): Item {
  return { name, in: 'path', required: true, description, schema: { type: 'string' } };
}

/** `OrderLines` of `order-lines`: a name in names of paths and schemas and in ids of operations. */
export function pascalCase(name: string): string {
  return name.replace(/(?:^|[-.])(\w)/g, (_match, letter: string) => letter.toUpperCase());
}

/** The named schema of one page of a list. @param items the schema of each item */
export function pageSchema(name: string, description: string, items: Item): Item {
  return named(name, {
    description,
    type: 'object',
    properties: { items: { type: 'array', items }, nextCursor: { type: ['string', 'null'] } },
    required: ['items', 'nextCursor'],
  });
}

export function json(schema: Item, example?: unknown): Content {
  return { 'application/json': example === undefined ? { schema } : { schema, example } };
}

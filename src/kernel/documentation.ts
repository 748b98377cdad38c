/**
 * What the OpenAPI document says of a resource and of its operations. It stands beside the handlers, and src/openapi reads it there. What
 * an operation knows of itself (its media types, whether Idempotency-Key and respond-async are honoured, who may call it at all) is read
 * off the operation and not said again.
 */
import type { AnswerName } from '../http/conduct/answers.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { Action } from '../model/access.ts';
import type { Collection } from '../model/collection.ts';
import type { Fields } from '../model/field.ts';

/**
 * A part of the document: plain JSON, written as the OpenAPI Specification names its members. The document is checked as a whole against
 * the official schemas in test/openapi, so its parts carry no TypeScript twin of those schemas.
 */
export type Item = Readonly<Record<string, unknown>>;

/** Media types of content, each with a Media Type Object. */
export type Content = Readonly<Record<string, Item>>;

/** The group of operations that a resource belongs to. */
export type Tag = { readonly name: string; readonly description: string };

/** A resource that is described by itself. */
export type PathDocumentation = {
  /** `RealtimeTickets`: ends the operation ids of HEAD, OPTIONS and TRACE, and is taken by no schema of a declared collection. */
  readonly name: string;
  /** What the path names, in sentences: `the types of events`. */
  readonly noun: string;
  readonly tag: Tag;
  /** Of the path. */
  readonly parameters?: readonly Item[];
};

/** A path of a collection, which is described by the collection's declaration. */
export type CollectionDocumentation = {
  readonly part: 'collection' | 'member' | 'bulk-delete';
  readonly collection: Collection;
  readonly limits: CollectionLimits;
} & CollectionVariant;

/** What is particular to the description of a collection that the program brings itself. */
export type CollectionVariant = {
  /** Absent: made from the name of the collection. */
  readonly names?: CollectionNames;
  /** Of the ids in examples. */
  readonly idPrefix?: string;
  /** How the description of an operation differs from that of any collection. */
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
  | 'remove'
  | 'bulk-delete';

/** What a collection and what it holds is called in schemas and operation ids, and in sentences. */
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
  readonly description?: string;
  /** Of the query component, and header fields that no other operation has. */
  readonly parameters?: readonly Item[];
  /** A list that is paged: by `page` and `cursor` alone, or with a `limit` as well. */
  readonly paged?: 'as-stored' | ListLimits;
  /** A list that is paged, filtered by these fields, sorted and selected from. */
  readonly listed?: { readonly fields: Fields; readonly limits: ListLimits };
  readonly takes?: Content;
  /** Content of the answers that have one; an answer that is missing here has none. */
  readonly gives?: Readonly<Partial<Record<AnswerName, Content>>>;
  /** It answers with content or without, as the case may be. */
  readonly silence?: 'sometimes';
  /** Further fields of 200 with a representation. */
  readonly representationFields?: readonly OwnField[];
  /** Further fields of what comes of a change, and of a 303 to a read. */
  readonly madeFields?: readonly OwnField[];
  /** The security schemes that it takes; absent: all. */
  readonly schemes?: readonly SchemeName[];
  /** Codes that its stages refuse with, besides those that its content, its conditions and its credentials raise. */
  readonly codes?: readonly ProblemCode[];
  /** Whether it makes a resource: 201. */
  readonly creates?: 'always' | 'sometimes';
  /** Whether what is asked for is done after the answer: 202. */
  readonly queues?: 'always' | 'sometimes';
  /** Whether the answer to a read lies elsewhere: 303. */
  readonly redirects?: 'always' | 'sometimes';
  /** The member of a collection that its access rules decide about. */
  readonly member?: MemberAccess;
  /** What else may be so of what stands at the path: it is not there, is hidden from the caller, or is seen and closed to the caller. */
  readonly mayBeMissing?: boolean;
  readonly mayBeHidden?: boolean;
  readonly mayBeClosed?: boolean;
};

export type MemberAccess = {
  readonly collection: Collection;
  readonly action: Action;
};

/** Header fields that an operation adds to those that the kernel gives its answers. */
export type OwnField =
  | 'Content-Disposition'
  | 'Content-Location'
  | 'Content-Security-Policy'
  | 'ETag'
  | 'Last-Modified'
  | 'Link'
  | 'Location'
  | 'Retry-After'
  | 'Set-Cookie'
  | 'X-Content-Type-Options'
  | 'X-Total-Count';

/** Places of a credential, as the document names them. */
export type SchemeName = 'bearer' | 'basic' | 'apiKey' | 'apiKeyHeader' | 'apiKeyQuery' | 'cookieAuth';

export type CollectionLimits = ListLimits & { readonly bulkDeleteIdsMax: number };

export type ListLimits = { readonly listLimitDefault: number; readonly listLimitMax: number };

const schemaName: unique symbol = Symbol('schemaName');
const representedCollection: unique symbol = Symbol('representedCollection');

/** The schema under a name of its own: the document keeps it once and refers to it. The same name must bring the same schema. */
export function named(name: string, schema: Item): Item {
  return { ...schema, [schemaName]: name };
}

/** Refers to the schema of what the collection serves. */
export function representationOf({ name }: Pick<Collection, 'name'>): Item {
  return { [representedCollection]: name };
}

/** What `named` or `representationOf` made of a schema; undefined for any other. */
export function referenceIn(
  schema: object,
): { readonly name: string } | { readonly collection: string } | undefined {
  if (schemaName in schema) return { name: String(schema[schemaName]) };
  if (representedCollection in schema) return { collection: String(schema[representedCollection]) };
  return undefined;
}

/** A part of a path that a request fills. */
export function pathParameter(name: string, description: string): Item {
  return { name, in: 'path', required: true, description, schema: { type: 'string' } };
}

/** The named schema of a page of a list. @param items schema of each */
export function pageSchema(name: string, description: string, items: Item): Item {
  return named(name, {
    description,
    type: 'object',
    properties: { items: { type: 'array', items }, nextCursor: { type: ['string', 'null'] } },
    required: ['items', 'nextCursor'],
  });
}

/** Content in JSON with an example of it. */
export function json(schema: Item, example?: unknown): Content {
  return { 'application/json': example === undefined ? { schema } : { schema, example } };
}

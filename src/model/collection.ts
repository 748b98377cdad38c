/**
 * A collection: the declaration a user writes, checked and filled in once (§2, §4).
 * `config/collections.ts` finds the mistakes in a declaration; this file says what a sound one means.
 */
import type { TObject } from 'typebox';
import type { Access, Rule } from './access.ts';
import type { Field, Fields } from './field.ts';

/** Body formats a collection takes besides merge patch and JSON Patch, which all take. */
export type BodyFormat = 'json' | 'form' | 'multipart' | 'text';

export type CollectionReference = {
  /** Property that holds the id. */
  readonly field: string;
  /** Name of the collection it points into. */
  readonly collection: string;
  /** Member of the 409 body that counts the dependants: `productCount` (§2.2). */
  readonly countAs: string;
};

/** A text that an index holds, and what it may therefore take at most: see config/text-bounds.ts. */
export type TextBound = {
  /** Member names from the root of the representation. */
  readonly path: readonly string[];
  /** Bytes of UTF-8. */
  readonly bytesMax: number;
};

export type Deprecation = {
  /** When the collection became deprecated, ISO 8601 (RFC 9745). */
  readonly since: string;
  /** When it may stop answering, ISO 8601; not before `since` (RFC 8594). */
  readonly sunset?: string;
  /** A page for people about the change, sent as Link rel=deprecation. */
  readonly link?: string;
};

/** What a user passes to `collection(...)`; everything but the schema has a default. */
export type CollectionDeclaration = {
  /** TypeBox object of the fields clients write; `id`, `createdAt`, `updatedAt`, `deletedAt` are made by the server. */
  readonly schema: TObject;
  readonly description?: string;
  readonly access?: Partial<Access>;
  /** Fields that only those may write whom the rule permits; to others they are as unpatchable. */
  readonly readOnly?: Readonly<Record<string, Rule>>;
  /** Fields that only those see whom the rule permits; for others they are not there. */
  readonly hidden?: Readonly<Record<string, Rule>>;
  /** The string field that holds the tenant of a resource: set from its creator, and what the rule `tenant` looks at. */
  readonly tenantField?: string;
  /** Answer 404 instead of 403 where the principal may not read the resource. Default true. */
  readonly conceal?: boolean;
  /** Whether PUT creates at a client-chosen id. Default false. */
  readonly putCreates?: boolean;
  /** DELETE sets `deletedAt` and hides the resource (§4.7.4). Default false. */
  readonly softDelete?: boolean;
  /** 428 for PUT, PATCH and DELETE of an existing resource without If-Match (RFC 6585). Default false. */
  readonly requireMatch?: boolean;
  /** Each entry one index: a field, or several in order. */
  readonly indexes?: readonly (string | readonly string[])[];
  readonly unique?: readonly string[];
  /** Fields set at creation that PATCH and PUT may not change. */
  readonly unpatchable?: readonly string[];
  readonly references?: Readonly<Record<string, { readonly collection: string; readonly countAs?: string }>>;
  /** Body formats. Default JSON, form and multipart. */
  readonly formats?: readonly BodyFormat[];
  /** The string field that a text/plain body becomes; needs the format `text`. */
  readonly textField?: string;
  /** String fields that `q` searches; default all. */
  readonly search?: readonly string[];
  /** Cache-Control of its reads. Default `no-cache` for public reads, `private, no-cache` otherwise. */
  readonly cacheControl?: string;
  readonly deprecation?: Deprecation;
  /** Complete bodies that a POST would accept; shown in the OpenAPI document. */
  readonly examples?: readonly Readonly<Record<string, unknown>>[];
};

/** A declaration with every default filled in and every name resolved. */
export type Collection = {
  readonly name: string;
  readonly description: string;
  readonly schema: TObject;
  readonly fields: Fields;
  readonly access: Access;
  readonly readOnly: ReadonlyMap<string, Rule>;
  readonly hidden: ReadonlyMap<string, Rule>;
  readonly tenantField: string | undefined;
  readonly conceal: boolean;
  readonly putCreates: boolean;
  readonly softDelete: boolean;
  readonly requireMatch: boolean;
  readonly indexes: readonly (readonly Field[])[];
  readonly unique: readonly Field[];
  readonly textBounds: readonly TextBound[];
  readonly unpatchable: ReadonlySet<string>;
  readonly required: ReadonlySet<string>;
  readonly references: readonly CollectionReference[];
  /** References of other collections into this one: what can block a deletion. */
  readonly dependants: readonly (CollectionReference & { readonly from: string })[];
  readonly formats: ReadonlySet<BodyFormat>;
  readonly textField: string | undefined;
  readonly searchFields: readonly string[];
  readonly cacheControl: string;
  readonly deprecation: Deprecation | undefined;
  readonly examples: readonly Readonly<Record<string, unknown>>[];
};

/** Folds case and compatibility forms so that both stores find the same text by plain substring search. */
export function foldText(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

/** The text that `q` looks in: the folded search fields, one a line so that no term matches across two. */
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

/**
 * Parsed content: its format and value, its limits (§8), and the shape by which forms become documents. Each name of a form maps to a
 * path in the document, read once from a collection's schema (§4.4): `price` is a number, `tags` or `tags[]` an array by repetition,
 * `address[city]` a member of a nested object (also `address.city`, the name that filters use). Arrays of objects have no name in a form;
 * JSON carries them.
 */
import type { TObject } from 'typebox';
import { isNode, type SchemaNode } from '../../config/declared-schema.ts';
import type { Problem } from '../../http/problem.ts';
import type { Json } from '../../http/syntax/json.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import type { BodyFormat, Collection } from '../../model/collection.ts';
import type { Upload, UploadRule } from '../../model/logic/actions.ts';

export type ScalarKind = 'string' | 'number' | 'boolean' | 'null';

/** A file is the index of it among the files of the content. */
export type FormEntry = readonly [name: string, value: string | number];

export type FormPlace = {
  readonly path: readonly string[];
  /** Types that a text may become; if a string is allowed it stays a string. */
  readonly kinds: ReadonlySet<ScalarKind>;
  readonly repeats: boolean;
  /** An empty text means that the member is absent: a browser always sends a form's empty controls. */
  readonly emptyIsAbsent: boolean;
};

/** The part of a collection that `parseContent` reads. */
export type ContentShape = {
  readonly formats: ReadonlySet<BodyFormat>;
  readonly textField: string | undefined;
  readonly places: ReadonlyMap<string, FormPlace>;
  /** The names that are files, with their rules; in the document each is an integer, the index of the file. */
  readonly files?: ReadonlyMap<string, UploadRule>;
};

/** Called once for each collection, at start. */
export function contentShape(collection: Pick<Collection, 'schema' | 'formats' | 'textField'>): ContentShape {
  const places = new Map<string, FormPlace>();
  addPlaces(places, collection.schema, []);
  return { formats: collection.formats, textField: collection.textField, places };
}

function addPlaces(
  places: Map<string, FormPlace>,
  schema: TObject | SchemaNode,
  path: readonly string[],
  optional = false,
): void {
  const required = Array.isArray(schema.required) ? schema.required : [];
  for (const [name, value] of Object.entries(isNode(schema.properties) ? schema.properties : {})) {
    if (!isNode(value)) continue;
    const here = [...path, name];
    const isOptional = optional || !required.includes(name) || 'default' in value;
    if (isNode(value.properties)) {
      addPlaces(places, value, here, isOptional);
      continue;
    }
    const place = createPlace(value, here, isOptional);
    if (place === undefined) continue;
    for (const spelling of spellings(here, place.repeats)) {
      // A property that is literally named `a.b` wins over the member `b` of `a`.
      if (here.length === 1 || !places.has(spelling)) places.set(spelling, place);
    }
  }
}

function spellings(path: readonly string[], repeats: boolean): readonly string[] {
  const [first = '', ...rest] = path;
  const bracketed = first + rest.map((name) => `[${name}]`).join('');
  const names = rest.length === 0 ? [bracketed] : [bracketed, path.join('.')];
  return repeats ? names.flatMap((name) => [name, `${name}[]`]) : names;
}

function createPlace(schema: SchemaNode, path: readonly string[], optional: boolean): FormPlace | undefined {
  const items = arrayItems(schema);
  const kinds = scalarKinds(items ?? schema);
  if (kinds.size === 0) return undefined;
  const emptyIsAbsent = optional && (items !== undefined || !kinds.has('string') || refusesEmpty(schema));
  return { path, kinds, repeats: items !== undefined, emptyIsAbsent };
}

function refusesEmpty(schema: SchemaNode): boolean {
  return (
    (typeof schema.minLength === 'number' && schema.minLength > 0) ||
    typeof schema.format === 'string' ||
    'enum' in schema ||
    'anyOf' in schema
  );
}

/** Returns the schema of the items of an array, also of a nullable one. */
function arrayItems(schema: SchemaNode): SchemaNode | undefined {
  if (schema.type === 'array') return isNode(schema.items) ? schema.items : undefined;
  for (const branch of listBranches(schema)) {
    const items = arrayItems(branch);
    if (items !== undefined) return items;
  }
  return undefined;
}

export function scalarKinds(schema: SchemaNode): Set<ScalarKind> {
  const kinds = new Set<ScalarKind>();
  for (const type of [schema.type].flat()) {
    if (type === 'string' || type === 'number' || type === 'boolean' || type === 'null') kinds.add(type);
    if (type === 'integer') kinds.add('number');
  }
  const values = Array.isArray(schema.enum) ? schema.enum : [];
  for (const value of 'const' in schema ? [schema.const, ...values] : values) {
    const kind = value === null ? 'null' : typeof value;
    if (kind === 'string' || kind === 'number' || kind === 'boolean' || kind === 'null') kinds.add(kind);
  }
  for (const branch of listBranches(schema)) for (const kind of scalarKinds(branch)) kinds.add(kind);
  return kinds;
}

export function listBranches(schema: SchemaNode): readonly SchemaNode[] {
  return [schema.anyOf, schema.oneOf, schema.allOf].flat().filter(isNode);
}

// Results of parse-content.ts: a value in one of the formats of §4.4, §4.6 and §4.9, or a problem.

export type PatchFormat = 'json' | 'merge-patch' | 'json-patch';

export type ContentFormat = PatchFormat | 'form' | 'multipart' | 'text' | 'sql';

/** `value`: any JSON for the JSON formats, an object for forms and text with a shape, a string for SQL. */
export type Parsed =
  | {
      readonly ok: true;
      readonly format: ContentFormat;
      readonly value: Json;
      /** The files, if the shape has any. */
      readonly files?: readonly Upload[];
    }
  | { readonly ok: false; readonly problem: Problem };

/** The content of a PATCH; `json` means a merge patch (§4.6.1). */
export type PatchContent = { readonly format: PatchFormat; readonly value: Json };

export type ParsedPatch =
  | { readonly ok: true; readonly value: PatchContent }
  | { readonly ok: false; readonly problem: Problem };

/** Stateless between calls (only `stream` keeps state). 135 ns for 300 octets of ASCII. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes UTF-8 (RFC 8259 §8.1), byte order mark included; undefined for bad octets instead of U+FFFD. */
export function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    // A fatal decoder throws only for octets that are not UTF-8.
    return undefined;
  }
}

/** Labels of UTF-8 and of its subset US-ASCII; "utf8" is a common misspelling. */
const utf8Labels: ReadonlySet<string> = new Set(['utf-8', 'utf8', 'us-ascii']);

/** Returns the charset of the media type if it is not UTF-8. */
export function foreignCharset(mediaType: MediaType): string | undefined {
  if (mediaType.parameters.size === 0) return undefined;
  const charset = mediaType.parameters.get('charset')?.toLowerCase();
  return charset === undefined || utf8Labels.has(charset) ? undefined : charset;
}

// Limits on content other than its octets (§8), with the defaults of the settings table.

export type ContentLimits = {
  /** Levels of arrays and objects. */
  readonly jsonDepthMax: number;
  /** Members of one JSON object. */
  readonly jsonMembersMax: number;
  /** Names and values of one form, urlencoded or multipart, files included. */
  readonly formFieldsMax: number;
  /** Octets of one field's value. */
  readonly multipartFieldBytesMax: number;
  /** Header fields of one part. */
  readonly multipartHeaderPairsMax: number;
  /** Octets of one part's header section. */
  readonly multipartHeaderBytesMax: number;
};

export const contentLimitsDefault: ContentLimits = {
  jsonDepthMax: 64,
  jsonMembersMax: 10_000,
  formFieldsMax: 1000,
  multipartFieldBytesMax: 1024 * 1024,
  multipartHeaderPairsMax: 16,
  multipartHeaderBytesMax: 8 * 1024,
};

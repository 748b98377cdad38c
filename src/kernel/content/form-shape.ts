/**
 * Form names and the types of their texts, read once from a collection's schema (§4.4). Each name maps to a path in the
 * document: `price` is a number, `tags` or `tags[]` an array by repetition, `address[city]` a member of a nested object
 * (also `address.city`, the name that filters use). Arrays of objects have no name in a form; JSON carries them.
 */
import type { TObject } from 'typebox';
import type { BodyFormat, Collection } from '../../model/collection.ts';
import type { UploadRule } from '../../model/logic/upload.ts';

export type ScalarKind = 'string' | 'number' | 'boolean' | 'null';

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

type Schema = Readonly<Record<string, unknown>>;

/** Called once for each collection, at start. */
export function contentShape(collection: Pick<Collection, 'schema' | 'formats' | 'textField'>): ContentShape {
  const places = new Map<string, FormPlace>();
  addPlaces(places, collection.schema, []);
  return { formats: collection.formats, textField: collection.textField, places };
}

function addPlaces(
  places: Map<string, FormPlace>,
  schema: TObject | Schema,
  path: readonly string[],
  optional = false,
): void {
  const required = Array.isArray(schema.required) ? schema.required : [];
  for (const [name, value] of Object.entries(isSchema(schema.properties) ? schema.properties : {})) {
    if (!isSchema(value)) continue;
    const here = [...path, name];
    const isOptional = optional || !required.includes(name) || 'default' in value;
    if (isSchema(value.properties)) {
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

function createPlace(schema: Schema, path: readonly string[], optional: boolean): FormPlace | undefined {
  const items = arrayItems(schema);
  const kinds = scalarKinds(items ?? schema);
  if (kinds.size === 0) return undefined;
  const emptyIsAbsent = optional && (items !== undefined || !kinds.has('string') || refusesEmpty(schema));
  return { path, kinds, repeats: items !== undefined, emptyIsAbsent };
}

function refusesEmpty(schema: Schema): boolean {
  return (
    (typeof schema.minLength === 'number' && schema.minLength > 0) ||
    typeof schema.format === 'string' ||
    'enum' in schema ||
    'anyOf' in schema
  );
}

/** Returns the schema of the items of an array, also of a nullable one. */
function arrayItems(schema: Schema): Schema | undefined {
  if (schema.type === 'array') return isSchema(schema.items) ? schema.items : undefined;
  for (const branch of listBranches(schema)) {
    const items = arrayItems(branch);
    if (items !== undefined) return items;
  }
  return undefined;
}

function scalarKinds(schema: Schema): Set<ScalarKind> {
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

function listBranches(schema: Schema): readonly Schema[] {
  return [schema.anyOf, schema.oneOf, schema.allOf].flat().filter(isSchema);
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

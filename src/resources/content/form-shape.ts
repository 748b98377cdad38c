/**
 * What a form may name and what its texts become, read once from a collection's schema (§4.4).
 *
 * A form has names and texts only. This table gives each name its place in the document and the types that
 * stand there: `price` a number, `tags` or `tags[]` an array by repetition, `address[city]` a member of a nested
 * object (`address.city` too, the name that filters use). Arrays of objects have no name in a form; JSON carries them.
 */
import type { TObject } from 'typebox';
import type { BodyFormat, Collection } from '../../model/collection.ts';

export type ScalarKind = 'string' | 'number' | 'boolean' | 'null';

/** One place that a form can fill. */
export type FormPlace = {
  /** Member names from the root of the document. */
  readonly path: readonly string[];
  /** What a text may become there. Where a string is allowed it stays a string. */
  readonly kinds: ReadonlySet<ScalarKind>;
  readonly repeats: boolean;
  /** An empty text means that the member is absent: a form cannot leave out a control that stands in it. */
  readonly emptyIsAbsent: boolean;
};

/** What `parseContent` needs to know of a collection. */
export type ContentShape = {
  readonly formats: ReadonlySet<BodyFormat>;
  readonly textField: string | undefined;
  readonly places: ReadonlyMap<string, FormPlace>;
};

type Schema = Readonly<Record<string, unknown>>;

/** Made once for each collection, at start. */
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
    const place = placeOf(value, here, isOptional);
    if (place === undefined) continue;
    for (const spelling of spellings(here, place.repeats)) {
      // A property that is literally called `a.b` keeps its name before the member `b` of `a`.
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

function placeOf(schema: Schema, path: readonly string[], optional: boolean): FormPlace | undefined {
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

/** The schema of the items where the schema is an array, also one that may be null. */
function arrayItems(schema: Schema): Schema | undefined {
  if (schema.type === 'array') return isSchema(schema.items) ? schema.items : undefined;
  for (const branch of branchesOf(schema)) {
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
  for (const branch of branchesOf(schema)) for (const kind of scalarKinds(branch)) kinds.add(kind);
  return kinds;
}

function branchesOf(schema: Schema): readonly Schema[] {
  return [schema.anyOf, schema.oneOf, schema.allOf].flat().filter(isSchema);
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

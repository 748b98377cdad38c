/**
 * The fields that clients may name, from a collection's schema (§2.1), read as plain JSON Schema: a schema need not be made with TypeBox.
 * Other fields than scalars and arrays of scalars can only be selected.
 */

import { type Field, type Fields, madeFields, type ScalarType } from '../model/field.ts';
import { fileRule } from '../model/file.ts';
import { namedSchemas, type SchemaNode } from './declared-schema.ts';

/** The keywords of JSON Schema that decide a field's type; all others only restrict its values. */
export type Schema = {
  readonly type?: unknown;
  readonly format?: unknown;
  readonly const?: unknown;
  readonly enum?: unknown;
  readonly anyOf?: unknown;
  readonly oneOf?: unknown;
  readonly items?: unknown;
  readonly $ref?: unknown;
  readonly properties?: unknown;
};

/** The members of a file that are fields. */
const fileMembers = ['id', 'name', 'type', 'bytes', 'digest'];

/** Objects nested deeper can only be selected as a whole. */
const nestedLevelsMax = 8;

/** `id` first, then the declared fields in order, nested ones by dotted name, then `createdAt` and `updatedAt`. */
export function fieldsOf(schema: Schema): Fields {
  const fields = new Map<string, Field>();
  const [id, ...times] = madeFields;
  if (id !== undefined) fields.set(id.name, id);
  let named: ReadonlyMap<string, unknown> | undefined;
  const referred: Referred = ($ref) => {
    named ??= namedSchemas(schema as SchemaNode);
    return named.get($ref);
  };
  addProperties(schema, [], { fields, referred });
  for (const time of times) fields.set(time.name, time);
  return fields;
}

export function propertiesOf(schema: Schema): readonly (readonly [name: string, schema: Schema])[] {
  return isRecord(schema.properties)
    ? Object.entries(schema.properties).filter((entry): entry is [string, Schema] => isRecord(entry[1]))
    : [];
}

function pick(schema: Schema, names: readonly string[]): Readonly<Record<string, Schema>> {
  return Object.fromEntries(propertiesOf(schema).filter(([name]) => names.includes(name)));
}

/** Returns the target of a reference. */
type Referred = ($ref: string) => unknown;

type Adding = { readonly fields: Map<string, Field>; readonly referred: Referred };

function addProperties(schema: Schema, above: readonly string[], adding: Adding): void {
  const { fields, referred } = adding;
  for (const [name, property] of propertiesOf(schema)) {
    const path = [...above, name];
    const field = fieldOf(property, path, referred);
    fields.set(field.name, field);
    const nested =
      field.type === 'json' && path.length < nestedLevelsMax ? objectWithin(property) : undefined;
    if (nested === undefined) continue;
    // Of a file, what queries may ask for: its paths follow from its document.
    if (fileRule(nested) === undefined) addProperties(nested, path, adding);
    else addProperties({ properties: pick(nested, fileMembers) }, path, adding);
  }
}

function fieldOf(schema: Schema, path: readonly string[], referred: Referred): Field {
  const name = path.join('.');
  const scalar = scalarTypeOf(schema, referred);
  if (scalar !== undefined) return { name, path, type: scalar, ...dayOf(schema, referred) };
  const items = itemsOf(schema, referred);
  const item = items === undefined ? undefined : scalarTypeOf(items, referred);
  if (items === undefined || item === undefined) return { name, path, type: 'json' };
  return { name, path, type: 'array', item, ...dayOf(items, referred) };
}

function dayOf(schema: Schema, referred: Referred): Pick<Field, 'isDay'> {
  const isDay = alternativesOf(schema, referred).every(
    ({ type, format }) => type === 'string' && format === 'date',
  );
  return isDay ? { isDay } : {};
}

/** One scalar type that covers all non-null alternatives, or undefined. */
function scalarTypeOf(schema: Schema, referred: Referred): ScalarType | undefined {
  let found: ScalarType | undefined;
  for (const alternative of alternativesOf(schema, referred)) {
    const type = plainScalarType(alternative);
    if (type === undefined) return undefined;
    const joint = found === undefined ? type : jointType(found, type);
    if (joint === undefined) return undefined;
    found = joint;
  }
  return found;
}

function itemsOf(schema: Schema, referred: Referred): Schema | undefined {
  const [only, ...others] = alternativesOf(schema, referred);
  if (only === undefined || others.length > 0 || only.type !== 'array' || !isRecord(only.items))
    return undefined;
  return only.items;
}

/** Objects behind a reference have no fields of their own: they may hold themselves. */
function objectWithin(schema: Schema): Schema | undefined {
  const [only, ...others] = alternativesOf(schema);
  return others.length === 0 && only?.type === 'object' ? only : undefined;
}

/**
 * The schema's alternatives without `null`: a nullable field compares like the field itself.
 * @param referred undefined: references stay
 */
function alternativesOf(
  schema: Schema,
  referred?: Referred,
  seen: Set<Schema> = new Set(),
): readonly Schema[] {
  if (referred !== undefined && schema.$ref !== undefined) {
    // What it leads to is among the alternatives already.
    if (seen.has(schema)) return [];
    seen.add(schema);
    return alternativesOf(withoutReferences(schema, referred), referred, seen);
  }
  const within = (part: Schema): readonly Schema[] => alternativesOf(part, referred, seen);
  const parts = Array.isArray(schema.anyOf) ? schema.anyOf : schema.oneOf;
  if (Array.isArray(parts)) return parts.filter(isRecord).flatMap(within);
  if (Array.isArray(schema.type)) return schema.type.flatMap((type) => within({ ...schema, type }));
  if (Array.isArray(schema.enum)) return schema.enum.flatMap((value) => within({ const: value }));
  return schema.type === 'null' || schema.const === null ? [] : [schema];
}

/** With the keywords of what it refers to, which those beside the reference narrow. */
function withoutReferences(schema: Schema, referred: Referred): Schema {
  const followed = new Set<unknown>();
  let { $ref, ...own } = schema;
  while (typeof $ref === 'string' && !followed.has($ref)) {
    followed.add($ref);
    const target = referred($ref);
    if (!isRecord(target)) break;
    const { $ref: next, ...keywords } = target;
    own = { ...keywords, ...own };
    $ref = next;
  }
  return own;
}

function plainScalarType(schema: Schema): ScalarType | undefined {
  const type = schema.type ?? (schema.const === undefined ? undefined : typeof schema.const);
  if (type === 'string')
    return schema.format === 'date-time' && schema.const === undefined ? 'timestamp' : 'string';
  return type === 'number' || type === 'integer' || type === 'boolean' ? type : undefined;
}

function jointType(one: ScalarType, other: ScalarType): ScalarType | undefined {
  if (one === other) return one;
  const pair = new Set([one, other]);
  if (pair.has('integer') && pair.has('number')) return 'number';
  return pair.has('string') && pair.has('timestamp') ? 'string' : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

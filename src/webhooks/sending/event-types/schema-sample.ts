/**
 * Makes a value that a JSON Schema allows, for the samples of event types: the first of a few likely candidates that
 * fits. If none fits, there is no sample; the declaration can add `examples`. The same schema always has the same
 * sample.
 *
 * Deliberately no general solver: `not`, `if` and `patternProperties` are only checked, never solved.
 */
import type { TSchema } from 'typebox';
import { Check } from 'typebox/value';
import { CompiledSchema } from '../../../config/declared-schema.ts';
import { textCandidates } from './text-sample.ts';

export type Schema = Readonly<Record<string, unknown>>;

/** Objects nested deeper than this have only required members, which ends most recursions. */
const optionalDepthMax = 3;
/** Schemas nested deeper than this have no sample. */
const depthMax = 24;
/** Candidates for one schema; an array of unique items may need many. */
const candidatesMax = 200;
const itemsMax = 100;

/** @returns undefined if none was found */
export function schemaSample(schema: Schema): unknown {
  return firstFitting(schema, { whole: new CompiledSchema(schema), steps: { left: 20_000 } }, 0);
}

type Context = {
  /** Resolves the references of each part. */
  readonly whole: CompiledSchema;
  /** Remaining candidates for the whole: nested alternatives multiply. */
  readonly steps: { left: number };
};

function firstFitting(schema: Schema, context: Context, depth: number): unknown {
  for (const value of fitting(schema, context, depth)) return value;
  return undefined;
}

/** Yields different values that the schema allows, the simplest first. */
function* fitting(schema: Schema, context: Context, depth: number): Generator<unknown> {
  if (depth > depthMax) return;
  const prepared = context.whole.prepared(schema) as TSchema;
  let tried = 0;
  for (const value of candidates(schema, context, depth)) {
    context.steps.left -= 1;
    tried += 1;
    if (tried > candidatesMax || context.steps.left < 0) return;
    if (Check(prepared, value)) yield value;
  }
}

function* candidates(schema: Schema, context: Context, depth: number): Generator<unknown> {
  if (Array.isArray(schema.examples)) yield* schema.examples;
  if ('default' in schema) yield schema.default;
  if ('const' in schema) yield schema.const;
  if (Array.isArray(schema.enum)) yield* schema.enum;
  if (typeof schema.$ref === 'string') {
    const referred = context.whole.referred(schema.$ref);
    const { $ref: _ref, ...rest } = schema;
    if (isSchema(referred)) yield* fitting(merged(rest, referred), context, depth + 1);
    return;
  }
  if (Array.isArray(schema.allOf)) {
    const { allOf, ...rest } = schema;
    yield* fitting((allOf as unknown[]).filter(isSchema).reduce(merged, rest), context, depth + 1);
    return;
  }
  for (const keyword of ['anyOf', 'oneOf'] as const) {
    const { [keyword]: parts, ...rest } = schema;
    if (!Array.isArray(parts)) continue;
    // Prefer another type to null.
    const sorted = parts
      .filter(isSchema)
      .sort((a, b) => Number(a.type === 'null') - Number(b.type === 'null'));
    for (const part of sorted) yield* fitting(merged(rest, part), context, depth + 1);
    return;
  }
  const types = Array.isArray(schema.type) ? (schema.type as unknown[]) : [schema.type ?? typeOf(schema)];
  for (const type of types) yield* ofType(type, schema, context, depth);
}

/** The type that the keywords imply if the schema names none. */
function typeOf(schema: Schema): string {
  if ('properties' in schema || 'required' in schema || 'patternProperties' in schema) return 'object';
  if ('items' in schema || 'prefixItems' in schema) return 'array';
  if ('pattern' in schema || 'minLength' in schema || 'format' in schema) return 'string';
  return 'minimum' in schema || 'multipleOf' in schema ? 'number' : 'any';
}

function* ofType(type: unknown, schema: Schema, context: Context, depth: number): Generator<unknown> {
  if (type === 'object') yield* objects(schema, context, depth);
  else if (type === 'array') yield* arrays(schema, context, depth);
  else if (type === 'string') yield* textCandidates(schema);
  else if (type === 'number' || type === 'integer') yield* numberCandidates(schema, type === 'integer');
  else if (type === 'boolean') yield* [true, false];
  else if (type === 'null') yield null;
  else yield* ['text', 1, true, {}, [], null];
}

function* objects(schema: Schema, context: Context, depth: number): Generator<unknown> {
  const required = new Set(Array.isArray(schema.required) ? (schema.required as string[]) : []);
  // First with all declared members, then with required ones only: one of them may be too many or too few.
  if (depth <= optionalDepthMax) yield objectOf(schema, context, depth, () => true);
  yield objectOf(schema, context, depth, (name) => required.has(name));
}

function objectOf(
  schema: Schema,
  context: Context,
  depth: number,
  isWanted: (name: string) => boolean,
): Readonly<Record<string, unknown>> {
  const made: Record<string, unknown> = {};
  for (const [name, part] of Object.entries(isSchema(schema.properties) ? schema.properties : {})) {
    if (!isWanted(name) || !isSchema(part)) continue;
    const value = firstFitting(part, context, depth + 1);
    if (value !== undefined) made[name] = value;
  }
  const least = Number(schema.minProperties ?? 0);
  for (const [name, part] of furtherMembers(schema)) {
    if (Object.keys(made).length >= Math.min(least, itemsMax)) break;
    const value = firstFitting(part, context, depth + 1);
    if (value !== undefined) made[name] ??= value;
  }
  return made;
}

/** Members that an object may have besides the declared ones, such as those of a Record. */
function* furtherMembers(schema: Schema): Generator<readonly [name: string, schema: Schema]> {
  for (const [pattern, part] of Object.entries(
    isSchema(schema.patternProperties) ? schema.patternProperties : {},
  )) {
    if (!isSchema(part)) continue;
    for (const name of textCandidates({ pattern })) yield [name, part];
    for (let number = 1; number <= itemsMax; number += 1) yield [String(number), part];
  }
  const { additionalProperties: open = {} } = schema;
  if (open === false) return;
  for (let number = 1; number <= itemsMax; number += 1) yield [`member${number}`, isSchema(open) ? open : {}];
}

function* arrays(schema: Schema, context: Context, depth: number): Generator<unknown> {
  const least = Math.min(Number(schema.minItems ?? 0), itemsMax);
  const tuple = [schema.prefixItems, schema.items].find((items) => Array.isArray(items)) as
    | unknown[]
    | undefined;
  const start = (tuple ?? []).map((part) => firstFitting(isSchema(part) ? part : {}, context, depth + 1));
  const items = isSchema(schema.items) ? schema.items : {};
  const contained = isSchema(schema.contains) ? [firstFitting(schema.contains, context, depth + 1)] : [];
  const [value] = fitting(items, context, depth + 1).take(1);
  const open = tuple === undefined && value !== undefined;
  // Prefer one item to none, if the array may have one.
  for (const wanted of [Math.max(least, open ? 1 : 0), least]) {
    const made = [...start, ...contained];
    const more = schema.uniqueItems === true ? fitting(items, context, depth + 1) : endless(value);
    for (const item of more) {
      if (made.length >= wanted || item === undefined) break;
      if (
        schema.uniqueItems !== true ||
        !made.some((other) => JSON.stringify(other) === JSON.stringify(item))
      )
        made.push(item);
    }
    yield made;
  }
}

function* endless(value: unknown): Generator<unknown> {
  for (;;) yield value;
}

/** Merges the keywords by which samples are made; the whole schema is checked anyway. */
function merged(one: Schema, other: Schema): Schema {
  const both: Record<string, unknown> = { ...one, ...other };
  for (const keyword of ['properties', 'patternProperties']) {
    if (!isSchema(one[keyword]) || !isSchema(other[keyword])) continue;
    both[keyword] = membersOf(one[keyword], other[keyword]);
  }
  if (Array.isArray(one.required) && Array.isArray(other.required))
    both.required = [...one.required, ...other.required];
  for (const keyword of ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'])
    stricter(both, keyword, one, other, Math.max);
  for (const keyword of ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'])
    stricter(both, keyword, one, other, Math.min);
  if (Array.isArray(one.allOf) && Array.isArray(other.allOf)) both.allOf = [...one.allOf, ...other.allOf];
  return both;
}

function membersOf(one: Schema, other: Schema): Schema {
  const both: Record<string, unknown> = { ...one, ...other };
  for (const name of Object.keys(one)) {
    const [left, right] = [one[name], other[name]];
    if (isSchema(left) && isSchema(right)) both[name] = merged(left, right);
  }
  return both;
}

function stricter(
  both: Record<string, unknown>,
  keyword: string,
  one: Schema,
  other: Schema,
  choose: (a: number, b: number) => number,
): void {
  const [left, right] = [one[keyword], other[keyword]];
  if (typeof left === 'number' && typeof right === 'number') both[keyword] = choose(left, right);
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/* Numbers that a numeric schema may allow: those at its bounds and near them, and multiples. */

type NumberSchema = Readonly<Record<string, unknown>>;

/** Different numbers for one schema: an array may want them unique. */
const variantsMax = 100;

function* numberCandidates(schema: NumberSchema, isInteger: boolean): Generator<number> {
  const least = bound(schema.minimum, schema.exclusiveMinimum, Math.max) ?? Number.NEGATIVE_INFINITY;
  const most = bound(schema.maximum, schema.exclusiveMaximum, Math.min) ?? Number.POSITIVE_INFINITY;
  const multiple =
    typeof schema.multipleOf === 'number' && schema.multipleOf > 0 ? schema.multipleOf : undefined;
  const step = multiple ?? 1;
  if (least === Number.NEGATIVE_INFINITY && most === Number.POSITIVE_INFINITY) yield step;
  const start = least > Number.NEGATIVE_INFINITY ? least : most < Number.POSITIVE_INFINITY ? most : 0;
  const [from, direction] =
    least > Number.NEGATIVE_INFINITY ? [Math.ceil(start / step), 1] : [Math.floor(start / step), -1];
  if (multiple === undefined) yield start;
  for (let number = 0; number <= variantsMax; number += 1) yield (from + direction * number) * step;
  if (isInteger) return;
  // For bounds without a whole number between them.
  if (Number.isFinite(least) && Number.isFinite(most)) yield (least + most) / 2;
}

function bound(
  inclusive: unknown,
  exclusive: unknown,
  choose: (a: number, b: number) => number,
): number | undefined {
  const named = [inclusive, exclusive].filter((value): value is number => typeof value === 'number');
  return named.length === 0 ? undefined : named.reduce((a, b) => choose(a, b));
}

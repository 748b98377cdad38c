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

type Schema = Readonly<Record<string, unknown>>;

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

/** Different numbers or texts for one schema: an array may want them unique. */
const variantsMax = 100;

function* numberCandidates(schema: Schema, isInteger: boolean): Generator<number> {
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

/* Texts that a string schema may allow: by its format, its pattern or its length. */

const formats: Readonly<Record<string, string>> = {
  'date-time': '2026-08-01T09:30:00.000Z',
  date: '2026-08-01',
  time: '09:30:00Z',
  duration: 'P1D',
  email: 'ada@shop.example',
  'idn-email': 'ada@shop.example',
  hostname: 'shop.example',
  'idn-hostname': 'shop.example',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://shop.example/',
  url: 'https://shop.example/',
  iri: 'https://shop.example/',
  'uri-reference': '/orders/1',
  'iri-reference': '/orders/1',
  'uri-template': 'https://shop.example/orders/{id}',
  uuid: '01890a5d-ac96-774b-bcce-b302099a8057',
  'json-pointer': '/orders/0',
  'json-pointer-uri-fragment': '#/orders/0',
  'relative-json-pointer': '0',
  regex: '^a+$',
};

/** Greatest length of a sample; a schema that requires more has none. */
const charactersMax = 65_536;

function* textCandidates(schema: Schema): Generator<string> {
  const least = Math.min(Number(schema.minLength ?? 0), charactersMax);
  const most = Math.min(Number(schema.maxLength ?? charactersMax), charactersMax);
  const format = typeof schema.format === 'string' ? formats[schema.format] : undefined;
  if (format !== undefined) yield format;
  if (typeof schema.pattern === 'string') {
    for (const repeats of new Set([1, 0, 2, 3, least, Math.ceil(least / 2)])) {
      const text = patternSample(schema.pattern, repeats);
      if (text !== undefined) yield text;
    }
  }
  yield ofLength('text', least, most);
  for (let number = 1; number <= variantsMax; number += 1) {
    yield ofLength(`${number}`, least, most);
    yield ofLength(`text ${number}`, least, most);
  }
}

function ofLength(text: string, least: number, most: number): string {
  return text.padEnd(least, 'x').slice(0, Math.max(0, most));
}

/*
 * Makes a short text that a regular expression of JSON Schema matches: literals, classes, groups, alternatives and
 * quantifiers. It ignores assertions and does not follow backreferences, so the caller checks the text against the
 * expression.
 */

type Reader = { readonly source: string; at: number; readonly repeats: number };

/** Candidates for a negated class and for `.`, in the order of preference. */
const characters = 'a0A-_. /b1B:@#xyzXYZ23456789';
const nestingMax = 50;

/**
 * @param repeats repetitions of an optional part beyond its minimum, for longer texts
 * @returns undefined if the pattern has an unsupported part
 */
export function patternSample(source: string, repeats: number): string | undefined {
  const reader: Reader = { source, at: 0, repeats };
  const text = alternatives(reader, 0);
  return reader.at === source.length ? text : undefined;
}

/** Uses the first alternative and skips the others. */
function alternatives(reader: Reader, depth: number): string | undefined {
  if (depth > nestingMax) return undefined;
  const first = sequence(reader, depth);
  while (first !== undefined && reader.source[reader.at] === '|') {
    reader.at += 1;
    if (sequence(reader, depth) === undefined) return undefined;
  }
  return first;
}

function sequence(reader: Reader, depth: number): string | undefined {
  let text = '';
  while (reader.at < reader.source.length) {
    const next = reader.source[reader.at];
    if (next === '|' || next === ')') break;
    const atom = readAtom(reader, depth);
    if (atom === undefined) return undefined;
    text += atom.repeat(readQuantifier(reader));
  }
  return text;
}

function readAtom(reader: Reader, depth: number): string | undefined {
  const character = reader.source[reader.at] ?? '';
  if (character === '(') return readGroup(reader, depth);
  if (character === '[') return readClass(reader);
  if (character === '\\') return readEscape(reader)?.[0];
  reader.at += 1;
  if (character === '^' || character === '$') return '';
  return character === '.' ? 'a' : character;
}

const groupOpening = /\((?:\?(?::|<[A-Za-z_$][\w$]*>|(?<assertion><?[=!])))?/y;

function readGroup(reader: Reader, depth: number): string | undefined {
  groupOpening.lastIndex = reader.at;
  const opening = groupOpening.exec(reader.source);
  if (opening === null) return undefined;
  reader.at += opening[0].length;
  const inner = alternatives(reader, depth + 1);
  if (inner === undefined || reader.source[reader.at] !== ')') return undefined;
  reader.at += 1;
  return opening.groups?.assertion === undefined ? inner : '';
}

/** Tries candidates against the class as a regular expression. */
function readClass(reader: Reader): string | undefined {
  const start = reader.at;
  let end = start + 1;
  while (end < reader.source.length && reader.source[end] !== ']') end += reader.source[end] === '\\' ? 2 : 1;
  const text = reader.source.slice(start, end + 1);
  reader.at = end + 1;
  const literal = [...text].filter((character) => !'[]^-\\'.includes(character));
  return [...characters, ...literal].find((character) => isMatch(text, character));
}

function isMatch(text: string, character: string): boolean {
  try {
    return new RegExp(`^${text}$`, 'u').test(character);
  } catch {
    // Invalid by itself: then there is no sample.
    return false;
  }
}

const escaped = /\\(?:u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[pP]\{[^}]*\}|.)/y;

const backreference = /^\\[1-9k]/;
const letterOrDigit = /[A-Za-z0-9]/;
const codePoint = /^\\[ux]\{?([0-9a-fA-F]+)\}?$/;

/** The text of an escape; empty for the assertions `\b` and `\B`. */
function readEscape(reader: Reader): readonly [text: string] | undefined {
  escaped.lastIndex = reader.at;
  const found = escaped.exec(reader.source)?.[0];
  if (found === undefined) return undefined;
  reader.at += found.length;
  if (found === '\\b' || found === '\\B') return [''];
  if (backreference.test(found)) return undefined;
  const literal = found.slice(1);
  if (literal.length === 1 && !letterOrDigit.test(literal)) return [literal];
  const candidates = [...characters, '\n', '\t', '\r', '\0', ...codePointOf(found)];
  const match = candidates.find((character) => isMatch(found, character));
  return match === undefined ? undefined : [match];
}

function codePointOf(text: string): readonly string[] {
  const digits = codePoint.exec(text)?.[1];
  const code = digits === undefined ? Number.NaN : Number.parseInt(digits, 16);
  return code <= 0x10ffff ? [String.fromCodePoint(code)] : [];
}

const quantifier = /(?:(?<sign>[?*+])|\{(?<least>\d+)(?:,(?<most>\d*))?\})\??/y;

/** Repetitions of the preceding atom: the minimum plus `repeats`, up to the maximum. */
function readQuantifier(reader: Reader): number {
  quantifier.lastIndex = reader.at;
  const found = quantifier.exec(reader.source);
  if (found === null) return 1;
  reader.at += found[0].length;
  const { sign, least, most } = found.groups ?? {};
  const from = sign === '+' ? 1 : Number(least ?? 0);
  const to = sign === '?' ? 1 : least === undefined || most === '' ? Infinity : Number(most ?? least);
  return Math.min(from + reader.repeats, to, repeatsMax);
}

const repeatsMax = 10_000;

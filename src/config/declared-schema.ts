/**
 * A declared JSON Schema (2020-12): the references within it, and the check compiled from it by TypeBox; inspect-schema.ts says what it may
 * not be. References lead to `#`, a JSON Pointer, or the `$id` or `$anchor` of a schema within it. Nothing is fetched.
 *
 * A keyword that TypeBox decides otherwise than the standard, or at a cost that grows without bound, is a refinement of the schema that it
 * compiles:
 *
 *   $ref         a check of its own, once for each value: a document of n values takes n checks where nested alternatives would take 2^n
 *   multipleOf   by the decimal digits of both numbers; TypeBox divides doubles
 *   uniqueItems  by JSON's equality, for which 0 and -0 are one number
 *   enum         by a set, if it is long: TypeBox nests an expression for each value
 */
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { FieldError } from '../http/problem.ts';
import type { Json } from '../http/syntax/json.ts';
import { copyJson, isMembers, type Members, setMember } from '../model/json-value.ts';
import { type ReferredErrors, type SchemaError, sortErrors } from './schema-errors.ts';

export type SchemaNode = { readonly [keyword: string]: unknown };

export function isNode(value: unknown): value is SchemaNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Every schema that a reference in the schema can name, by the reference to it. */
export function namedSchemas(root: SchemaNode): ReadonlyMap<string, unknown> {
  const named = new Map<string, unknown>([['#', root]]);
  const pointers = new Set<string>();
  eachNode(root, ({ $id, $anchor, $ref }, node) => {
    if (typeof $id === 'string') named.set($id, node);
    if (typeof $anchor === 'string') named.set(`#${$anchor}`, node);
    if (typeof $ref === 'string' && $ref.startsWith('#/')) pointers.add($ref);
  });
  for (const pointer of pointers) {
    const target = schemaAt(root, pointer);
    if (isNode(target) || typeof target === 'boolean') named.set(pointer, target);
  }
  return named;
}

/** @param fragment a JSON Pointer in the form of a URI fragment (RFC 6901 §6) */
function schemaAt(root: SchemaNode, fragment: string): unknown {
  let at: unknown = root;
  for (const part of decoded(fragment).split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as SchemaNode)[name];
  }
  return at;
}

function decoded(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

/** Keywords whose value is data and holds no schemas. */
export const dataKeywords = new Set(['const', 'enum', 'default', 'examples']);
/** Keywords whose value maps names to schemas. */
export const mapKeywords = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
]);

/** The schemas directly within a schema, with the path to each. */
export function* partsOf(node: SchemaNode): Generator<readonly [path: string, part: SchemaNode]> {
  for (const [keyword, value] of Object.entries(node)) {
    if (dataKeywords.has(keyword) || typeof value !== 'object' || value === null) continue;
    const isMany = Array.isArray(value) || mapKeywords.has(keyword);
    if (!isMany) yield [`.${keyword}`, value as SchemaNode];
    else {
      for (const [name, part] of Object.entries(value))
        if (isNode(part)) yield [`.${keyword}${Array.isArray(value) ? `[${name}]` : `.${name}`}`, part];
    }
  }
}

/** A copy of the schema, with members that are not enumerable, in which `map` has replaced the schemas under these keywords. */
export function mapParts(
  node: SchemaNode,
  keywords: readonly string[],
  map: (part: SchemaNode, keyword: string) => unknown,
): Record<string, unknown> {
  const copy: Record<string, unknown> = Object.defineProperties({}, Object.getOwnPropertyDescriptors(node));
  for (const keyword of keywords) {
    const value = node[keyword];
    const mapped = (part: unknown) => (isNode(part) ? map(part, keyword) : part);
    if (Array.isArray(value)) copy[keyword] = value.map(mapped);
    else if (isNode(value) && mapKeywords.has(keyword)) {
      copy[keyword] = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, mapped(part)]));
    } else if (isNode(value)) copy[keyword] = map(value, keyword);
  }
  return copy;
}

/** Visits the schema and every schema within it, each object once: one may hold itself, which its bounds refuse later. */
export function eachNode(root: unknown, visit: (node: SchemaNode, same: SchemaNode) => void): void {
  const left = [root].flat().filter(isNode);
  const seen = new Set<SchemaNode>();
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    visit(node, node);
    for (const [, part] of partsOf(node)) left.push(part);
  }
}

/** The references that do not resolve. */
export function brokenReferences(schema: object): readonly string[] {
  const root = schema as SchemaNode;
  const named = namedSchemas(root);
  const broken = new Set<string>();
  eachNode(root, ({ $ref }) => {
    if (typeof $ref === 'string' && !named.has($ref)) broken.add($ref);
  });
  return [...broken];
}

type Refinement = {
  readonly check: (value: unknown) => boolean;
  /** TypeBox hands it on in `params.message`. */
  readonly error: (value: unknown) => string | ReferredErrors;
};

/** References lead to schemas that are compiled by themselves. */
const replacedKeywords = new Set(['$ref', '$defs', 'definitions', '$id', '$anchor']);

/** The check of a schema whose references all resolve. Checks are synchronous, one document after the other. */
export class CompiledSchema {
  readonly #root: SchemaNode;
  readonly #named: ReadonlyMap<string, unknown>;
  readonly #compiled = new Map<SchemaNode, ReturnType<typeof Compile>>();
  /** Values of the document that is being checked which fit, or do not fit, schemas that are referred to. */
  readonly #known = new Map<SchemaNode, Map<object, boolean>>();

  /** @throws if the schema cannot be compiled, for instance because a pattern is not a regular expression */
  constructor(root: SchemaNode) {
    this.#root = root;
    this.#named = namedSchemas(root);
    this.#of(root);
    eachNode(root, ({ $ref }) => {
      const target = typeof $ref === 'string' ? this.#named.get($ref) : undefined;
      if (isNode(target)) this.#of(target);
    });
  }

  check(value: unknown): boolean {
    return this.#of(this.#root).Check(value);
  }

  errors(value: unknown): readonly SchemaError[] {
    return this.errorsOf(this.#root, value);
  }

  errorsOf(part: SchemaNode, value: unknown): readonly SchemaError[] {
    const errors: readonly SchemaError[] = this.#of(part).Errors(value);
    return errors.map((error) => (error.keyword === 'pattern' ? described(error, part) : error));
  }

  /** For the author of the schema or of the value, at most `faultsMax`. */
  faultsOf(part: SchemaNode, value: unknown, faultsMax: number): readonly FieldError[] {
    const { missing, invalid } = sortErrors(this.errorsOf(part, value), faultsMax);
    return [...missing, ...invalid].slice(0, faultsMax);
  }

  /** Checks a part of the schema, once for each object or array until `forget`. */
  fits(part: SchemaNode, value: unknown): boolean {
    if (typeof value !== 'object' || value === null) return this.#of(part).Check(value);
    const known = this.#known.get(part) ?? new Map<object, boolean>();
    const before = known.get(value);
    if (before !== undefined) return before;
    this.#known.set(part, known);
    const fits = this.#of(part).Check(value);
    known.set(value, fits);
    return fits;
  }

  /** To be called after each document, which may change then. */
  forget(): void {
    this.#known.clear();
  }

  #of(part: SchemaNode): ReturnType<typeof Compile> {
    let compiled = this.#compiled.get(part);
    if (compiled === undefined) {
      compiled = Compile(this.prepared(part) as TSchema);
      this.#compiled.set(part, compiled);
    }
    return compiled;
  }

  /** Returns the target of a reference. */
  referred($ref: string): unknown {
    return this.#named.get($ref);
  }

  /** A part of the schema as TypeBox takes it, with references that need nothing else. */
  prepared(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map((part) => this.prepared(part));
    if (!isNode(schema)) return schema;
    // TypeBox keeps internal data in properties that are not enumerable.
    const copy: Record<string, unknown> = Object.defineProperties(
      {},
      Object.getOwnPropertyDescriptors(schema),
    );
    // By the kind it reads keywords that are taken out here; it compiles by the keywords alone.
    delete copy['~kind'];
    for (const [keyword, value] of Object.entries(schema)) {
      if (dataKeywords.has(keyword) || keyword.startsWith('~')) continue;
      if (replacedKeywords.has(keyword)) delete copy[keyword];
      else if (mapKeywords.has(keyword) && isNode(value)) {
        const parts = Object.entries(value).map(([name, part]) => [name, this.prepared(part)]);
        copy[keyword] = Object.fromEntries(parts);
      } else copy[keyword] = this.prepared(value);
    }
    const refinements = refine(copy);
    if (typeof schema.$ref === 'string') refinements.push(this.#reference(schema.$ref));
    const own = Array.isArray(schema['~refine']) ? schema['~refine'] : [];
    if (refinements.length > 0) copy['~refine'] = [...own, ...refinements];
    return copy;
  }

  #reference($ref: string): Refinement {
    const target = this.#named.get($ref);
    if (!isNode(target)) return { check: () => target !== false, error: () => 'is not allowed' };
    return {
      check: (value) => this.fits(target, value),
      error: (value) => () => this.errorsOf(target, value),
    };
  }
}

/** An expression says little to people: the description of its schema goes with it. */
function described(error: SchemaError, root: SchemaNode): SchemaError {
  let at: unknown = root;
  for (const name of error.schemaPath.split('/').slice(1)) {
    if (typeof at !== 'object' || at === null) return error;
    at = Reflect.get(at, name);
  }
  if (!isNode(at) || typeof at.description !== 'string') return error;
  return { ...error, params: { ...error.params, description: at.description } };
}

/** Takes keywords out of the copy of a schema that are checked here. */
function refine(schema: Record<string, unknown>): Refinement[] {
  const made: Refinement[] = [];
  const { multipleOf, uniqueItems, unevaluatedProperties } = schema;
  if (typeof multipleOf === 'number') {
    delete schema.multipleOf;
    const message = `must be a multiple of ${multipleOf}`;
    made.push({ check: (value) => isMultiple(value, multipleOf), error: () => message });
  }
  if (uniqueItems === true) {
    delete schema.uniqueItems;
    made.push({ check: hasUniqueItems, error: () => 'must not contain the same item twice' });
  }
  // Unknown members are found by unknown-members.ts.
  if (unevaluatedProperties === false) delete schema.unevaluatedProperties;
  for (const keyword of ['enum', 'anyOf', 'oneOf']) {
    const values = keyword === 'enum' ? schema.enum : literalsOf(schema[keyword]);
    if (!Array.isArray(values) || values.length <= comparedMax) continue;
    delete schema[keyword];
    const allowed = new Set(values.map(canonical));
    const message = oneOfMessage(values);
    made.push({ check: (value) => allowed.has(canonical(value)), error: () => message });
  }
  return made;
}

/** Values that TypeBox compares one by one. */
const comparedMax = 64;
const valuesShownMax = 20;

function oneOfMessage(values: readonly unknown[]): string {
  const texts = values.slice(0, valuesShownMax).map((value) => JSON.stringify(value));
  return `must be one of ${texts.join(', ')} and ${(values.length - valuesShownMax).toLocaleString('en')} more`;
}

export function isLiteral(part: unknown): part is { readonly const: unknown } {
  return isNode(part) && 'const' in part && !('anyOf' in part || 'allOf' in part || '$ref' in part);
}

export function isLiterals(value: unknown): value is readonly { readonly const: unknown }[] {
  return Array.isArray(value) && value.length > 0 && value.every(isLiteral);
}

function literalsOf(alternatives: unknown): readonly unknown[] | undefined {
  return isLiterals(alternatives) ? alternatives.map((part) => part.const) : undefined;
}

/** A text that is equal for equal JSON values, and only for those. JSON writes -0 as 0. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    isNode(member)
      ? Object.fromEntries(Object.entries(member).sort(([one], [other]) => (one < other ? -1 : 1)))
      : member,
  );
}

/** A set holds 0 and -0 once. */
function hasUniqueItems(value: unknown): boolean {
  if (!Array.isArray(value)) return true;
  const isNested = (item: unknown): boolean => typeof item === 'object' && item !== null;
  const nested = value.filter(isNested);
  const plain = value.length === nested.length ? [] : value.filter((item) => !isNested(item));
  return new Set(nested.map(canonical)).size + new Set(plain).size === value.length;
}

/** Judges by the shortest decimal digits of both numbers, as they are written in JSON: 1234567.89 is a multiple of 0.01. */
function isMultiple(value: unknown, divisor: number): boolean {
  if (typeof value !== 'number') return true;
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0;
  const [digits, places] = decimalOf(value);
  const [divisorDigits, divisorPlaces] = decimalOf(divisor);
  const most = Math.max(places, divisorPlaces);
  const scaled = (number: bigint, at: number): bigint => number * 10n ** BigInt(most - at);
  return scaled(digits, places) % scaled(divisorDigits, divisorPlaces) === 0n;
}

/** The number is `digits / 10 ** places`; `places` may be negative. */
function decimalOf(value: number): readonly [digits: bigint, places: number] {
  const [mantissa = '0', exponent = '0'] = String(value).split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  return [BigInt(whole + fraction), fraction.length - Number(exponent)];
}

export type PlainSchema = Readonly<Record<string, unknown>>;

/** A schema as clients read it: JSON without TypeBox's internal properties. */
export function plainSchema(schema: unknown): PlainSchema {
  const text = JSON.stringify(schema, (name, value: unknown) => (name.startsWith('~') ? undefined : value));
  return JSON.parse(text) as PlainSchema;
}

/** Returns the value with defaults filled in, or the value itself if there is nothing to fill. */
export type FillDefaults = (value: Json) => Json;

type Entry = {
  readonly name: string;
  readonly missing: Json | undefined;
  readonly fill: FillDefaults | undefined;
};

/**
 * Compiles the defaults of a schema: "fields left out are removed or reset" (§4.5). A property with a `default` is
 * reset to it, also inside nested objects and the objects of given arrays; any other stays absent. `anyOf` and other
 * alternatives are not entered. Undefined if the schema has no defaults.
 */
export function compileDefaults(schema: SchemaNode): FillDefaults | undefined {
  if (isNode(schema.items)) {
    const fill = compileDefaults(schema.items);
    if (fill !== undefined) return (value) => (Array.isArray(value) ? value.map(fill) : value);
  }
  if (!isNode(schema.properties)) return undefined;
  const entries: Entry[] = [];
  for (const [name, property] of Object.entries(schema.properties)) {
    if (!isNode(property)) continue;
    const missing = Object.hasOwn(property, 'default') ? (property.default as Json) : undefined;
    const fill = compileDefaults(property);
    if (missing !== undefined || fill !== undefined) entries.push({ name, missing, fill });
  }
  if (entries.length === 0) return undefined;
  return (value) => (isMembers(value) ? fillMembers(value, entries) : value);
}

function fillMembers(value: Members, entries: readonly Entry[]): Members {
  const filled: Members = {};
  for (const name of Object.keys(value)) setMember(filled, name, value[name] ?? null);
  for (const { name, missing, fill } of entries) {
    const standing = Object.hasOwn(filled, name) ? filled[name] : undefined;
    if (standing === undefined) {
      if (missing !== undefined) filled[name] = copyJson(missing);
    } else if (fill !== undefined) filled[name] = fill(standing);
  }
  return filled;
}

/** The value as a POST of it would be kept. */
export function withDefaults(
  schema: object,
  value: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const filled = compileDefaults(schema as SchemaNode)?.(value as Members) ?? value;
  return filled as Readonly<Record<string, unknown>>;
}

/**
 * The declared shape of a collection's documents, as the store remembers it, and the comparison of two shapes: does every document that fits
 * the earlier one fit the later one? The answer is conservative: a difference that this file does not know means that documents must be
 * looked at.
 */
import { hash } from 'node:crypto';
import type { SchemaNode } from '../config/declared-schema.ts';
import { holdsInstants } from '../config/instants.ts';
import type { Collection } from '../model/collection.ts';

/** As JSON: members are sorted, and annotations left out. */
export type DeclaredShape = {
  readonly schema: Keywords;
  /** By path; an indexed text has a longest length. */
  readonly textBounds: Readonly<Record<string, number>>;
  /** Names of collections by field. */
  readonly references: Readonly<Record<string, string>>;
  /** Set if documents have instants, which are kept in UTC. Absent in shapes of earlier versions, which kept them as they were sent. */
  readonly instants?: 'utc';
};

type Keywords = { readonly [keyword: string]: unknown };

/** Keywords by which no document is refused. */
const annotations: ReadonlySet<string> = new Set([
  ...['$comment', 'default', 'deprecated', 'description', 'examples', 'readOnly', 'title', 'writeOnly'],
]);
const named = ['properties', 'patternProperties', '$defs', 'definitions'];

export function shapeOf({ schema, textBounds, references }: Collection): DeclaredShape {
  return sorted({
    schema: withoutAnnotations(schema as object as Keywords),
    textBounds: Object.fromEntries(textBounds.map(({ path, bytesMax }) => [JSON.stringify(path), bytesMax])),
    references: Object.fromEntries(references.map(({ field, collection }) => [field, collection])),
    ...(holdsInstants(schema as object as SchemaNode) ? { instants: 'utc' } : {}),
  }) as DeclaredShape;
}

export function fingerprintOfShape(shape: DeclaredShape): string {
  return hash('sha256', JSON.stringify(shape), 'base64url');
}

function withoutAnnotations(schema: Keywords): Keywords {
  const kept: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (annotations.has(keyword)) continue;
    if (named.includes(keyword) && isKeywords(value)) {
      kept[keyword] = Object.fromEntries(
        Object.entries(value).map(([name, part]) => [
          name,
          isKeywords(part) ? withoutAnnotations(part) : part,
        ]),
      );
    } else if (Array.isArray(value))
      kept[keyword] = value.map((part) => (isKeywords(part) ? withoutAnnotations(part) : part));
    // A function, such as that of a refinement, is part of what refuses documents.
    else if (typeof value === 'function') kept[keyword] = String(value);
    else kept[keyword] = isKeywords(value) && keyword !== 'const' ? withoutAnnotations(value) : value;
  }
  return kept;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isKeywords(value)) return value;
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, sorted(value[name])]));
}

function isKeywords(value: unknown): value is Keywords {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const reasonsMax = 5;

/**
 * Lists why a document of the earlier shape may not fit the later one, with the pointer of the member; empty if every document fits. At most
 * five reasons.
 */
export function misfits(earlier: DeclaredShape, later: DeclaredShape): readonly string[] {
  const reasons: string[] = [];
  compare(earlier.schema, later.schema, '', (at, why) => void reasons.push(`${at || 'the document'} ${why}`));
  for (const [path, bytesMax] of Object.entries(later.textBounds)) {
    const before = earlier.textBounds[path];
    if (before === undefined || before > bytesMax) {
      reasons.push(
        `/${(JSON.parse(path) as string[]).join('/')} is indexed now, and may be too long for an index`,
      );
    }
  }
  for (const [field, target] of Object.entries(later.references)) {
    if (earlier.references[field] !== target) {
      reasons.push(`/${field} refers to ${target} now, where its value may be missing`);
    }
  }
  const isRespelt = later.instants !== undefined && earlier.instants === undefined;
  if (isRespelt && holdsInstants(earlier.schema)) reasons.push(respellingReason);
  return reasons.slice(0, reasonsMax);
}

export const respellingReason = 'date-times are kept in UTC now';

type Tell = (pointer: string, why: string) => void;

/** Later bounds may be lower, or absent. */
const lowerBounds = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties', 'minContains'];
const upperBounds = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties', 'maxContains'];
/** Later ones may be equal or absent. */
const restrictions = ['pattern', 'format', 'multipleOf', 'contentEncoding', 'contentMediaType'];
const ofObjects = ['properties', 'required'];
const compared: ReadonlySet<string> = new Set([
  ...lowerBounds,
  ...upperBounds,
  ...restrictions,
  ...ofObjects,
  ...['type', 'const', 'enum', 'anyOf', 'items', 'uniqueItems', '$id', '$schema'],
]);

function compare(earlier: Keywords, later: Keywords, at: string, tell: Tell): void {
  if (equal(earlier, later)) return;
  if (Array.isArray(earlier.anyOf) || Array.isArray(later.anyOf)) {
    compareAlternatives(earlier, later, at, tell);
    return;
  }
  for (const keyword of new Set([...Object.keys(earlier), ...Object.keys(later)])) {
    if (!compared.has(keyword) && !equal(earlier[keyword], later[keyword]))
      tell(at, `is declared differently (${keyword})`);
  }
  compareValues(earlier, later, at, tell);
  for (const keyword of lowerBounds) compareBound(earlier[keyword], later[keyword], 1, { keyword, at, tell });
  for (const keyword of upperBounds)
    compareBound(earlier[keyword], later[keyword], -1, { keyword, at, tell });
  for (const keyword of restrictions) {
    if (later[keyword] !== undefined && !equal(earlier[keyword], later[keyword]))
      tell(at, `must have the ${keyword} ${JSON.stringify(later[keyword])} now`);
  }
  if (later.uniqueItems === true && earlier.uniqueItems !== true) tell(at, 'must have unique items now');
  compareMembers(earlier, later, at, tell);
  if (isKeywords(later.items)) {
    if (isKeywords(earlier.items)) compare(earlier.items, later.items, `${at}/-`, tell);
    else tell(at, 'has items of a declared type now');
  }
}

/** Two lists of more alternatives are not compared one by one. */
const comparisonsMax = 1_000_000;

/** Each earlier alternative must fit into one of the later ones. */
function compareAlternatives(earlier: Keywords, later: Keywords, at: string, tell: Tell): void {
  const [before, now] = [alternativesOf(earlier), alternativesOf(later)];
  if (before === undefined || now === undefined || before.length * now.length > comparisonsMax) {
    tell(at, 'is declared differently (anyOf)');
    return;
  }
  const present = new Set(now.map((other) => JSON.stringify(other)));
  for (const one of before) {
    if (present.has(JSON.stringify(one))) continue;
    const fits = now.some((other) => {
      let isFit = true;
      compare(one, other, at, () => {
        isFit = false;
      });
      return isFit;
    });
    if (!fits) tell(at, `may no longer be ${describe(one)}`);
  }
}

/** Undefined beside other keywords, which hold for every alternative. */
function alternativesOf(schema: Keywords): readonly Keywords[] | undefined {
  if (!Array.isArray(schema.anyOf)) return [schema];
  return Object.keys(schema).length === 1 && schema.anyOf.every(isKeywords) ? schema.anyOf : undefined;
}

function describe(schema: Keywords): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  return schema.type === undefined ? 'what it was' : `of the type ${String(schema.type)} as declared before`;
}

function compareValues(earlier: Keywords, later: Keywords, at: string, tell: Tell): void {
  const [before, now] = [valuesOf(earlier), valuesOf(later)];
  if (now !== undefined) {
    const present = new Set(now.map((value) => JSON.stringify(value)));
    const gone = before?.filter((value) => !present.has(JSON.stringify(value)));
    if (gone === undefined) tell(at, 'must be one of given values now');
    else if (gone.length > 0)
      tell(
        at,
        `may no longer be ${gone
          .slice(0, reasonsMax)
          .map((each) => JSON.stringify(each))
          .join(', ')}`,
      );
    return;
  }
  const types = typesOf(later);
  if (types === undefined) return;
  const held = typesOf(earlier) ?? before?.map(typeOf);
  const isHeld = (type: string): boolean =>
    types.includes(type) || (type === 'integer' && types.includes('number'));
  if (held === undefined) tell(at, `must be of the type ${types.join(' or ')} now`);
  else if (!held.every(isHeld))
    tell(at, `must be of the type ${types.join(' or ')} now, and was ${held.join(' or ')}`);
}

function valuesOf(schema: Keywords): readonly unknown[] | undefined {
  if (schema.const !== undefined) return [schema.const];
  return Array.isArray(schema.enum) ? schema.enum : undefined;
}

function typesOf({ type }: Keywords): readonly string[] | undefined {
  if (type === undefined) return undefined;
  return Array.isArray(type) ? type.map(String) : [String(type)];
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

type BoundOf = { readonly keyword: string; readonly at: string; readonly tell: Tell };

/** @param sign 1: a later bound may be lower; -1: it may be higher */
function compareBound(earlier: unknown, later: unknown, sign: 1 | -1, { keyword, at, tell }: BoundOf): void {
  if (later === undefined || equal(earlier, later)) return;
  const isWider = typeof earlier === 'number' && typeof later === 'number' && sign * later <= sign * earlier;
  if (!isWider) tell(at, `has the ${keyword} ${JSON.stringify(later)} now`);
}

function compareMembers(earlier: Keywords, later: Keywords, at: string, tell: Tell): void {
  const [before, now] = [membersOf(earlier), membersOf(later)];
  const required = Array.isArray(earlier.required) ? earlier.required : [];
  for (const name of Array.isArray(later.required) ? later.required : []) {
    if (!required.includes(name)) tell(`${at}/${name}`, 'is required now');
  }
  if (before === undefined && now === undefined) return;
  const open = isOpen(earlier);
  for (const [name, part] of Object.entries(before ?? {})) {
    const other = now?.[name];
    if (isKeywords(part) && isKeywords(other)) compare(part, other, `${at}/${name}`, tell);
    else if (!isOpen(later) || 'patternProperties' in later) tell(`${at}/${name}`, 'is no longer declared');
  }
  // In a closed object no document has a member of that name yet.
  for (const name of Object.keys(now ?? {})) {
    if (open && before?.[name] === undefined) tell(`${at}/${name}`, 'has a declared type now');
  }
}

function membersOf(schema: Keywords): Keywords | undefined {
  return isKeywords(schema.properties) ? schema.properties : undefined;
}

/** True if members are allowed that the schema does not name (kernel/content/validator.ts). */
function isOpen(schema: Keywords): boolean {
  if (membersOf(schema) === undefined) return true;
  return ['additionalProperties', 'unevaluatedProperties', 'patternProperties'].some(
    (keyword) => schema[keyword] !== undefined && schema[keyword] !== false,
  );
}

function equal(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

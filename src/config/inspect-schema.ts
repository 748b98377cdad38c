/**
 * Finds what the schema of a declaration may not be: too large, with references that lead nowhere or around in a circle, or with defaults
 * that do not fit. The bounds keep compiling it, and checking a document, within the stack and within milliseconds.
 */
import { uploadRule } from '../model/logic/actions.ts';
import { instantWords, keptInstant } from '../model/timestamp.ts';
import {
  brokenReferences,
  CompiledSchema,
  dataKeywords,
  eachNode,
  isLiteral,
  isLiterals,
  isNode,
  mapKeywords,
  namedSchemas,
  partsOf,
  type SchemaNode,
} from './declared-schema.ts';
import { isRecord, kindOf } from './inspection.ts';

/** Subschemas of a schema, and those that apply to one value of a document. */
const subschemasMax = 10_000;
/** Subschemas in one keyword, such as `properties`. */
export const keywordSubschemasMax = 1000;
/** Subschemas within each other. */
export const schemaLevelsMax = 64;
export const enumValuesMax = 10_000;

/**
 * Finds what a schema may not be: one sentence for each mistake, which begins with its place.
 * @param place of the schema, such as `schema`
 */
export function schemaMistakes(schema: object, place: string): readonly string[] {
  const root = schema as SchemaNode;
  const size = sizeMistakes(root, place);
  if (size.length > 0) return size;
  const broken = brokenReferences(root).map(
    (reference) =>
      `${place} refers to "${reference}", which it does not declare; $ref takes #, a pointer such as #/$defs/NAME, or the $id or $anchor of a schema within it`,
  );
  if (broken.length > 0) return broken;
  const unevaluated = unevaluatedMistake(root, place);
  if (unevaluated !== undefined) return [unevaluated];
  const loop = loopMistake(root, place);
  if (loop !== undefined) return [loop];
  try {
    const compiled = new CompiledSchema(root);
    return defaultMistakes(root, place, compiled);
  } catch (error) {
    return [`${place} cannot be compiled: ${error instanceof Error ? error.message : String(error)}`];
  }
}

/** Those of size alone. A schema may hold itself: only the checks of one that is within its bounds may go down it by calls. */
export function sizeMistakes(schema: object, place: string): readonly string[] {
  const mistakes: string[] = [];
  let count = 0;
  const left: (readonly [path: string, node: SchemaNode, level: number])[] = [
    [place, schema as SchemaNode, 1],
  ];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [path, node, level] = next;
    count += 1;
    if (level > schemaLevelsMax)
      return [`${brief(path)} is nested deeper than ${schemaLevelsMax} levels of schemas`];
    if (count > subschemasMax)
      return [`${place} has more than ${subschemasMax.toLocaleString('en')} schemas within it`];
    for (const [keyword, value] of Object.entries(node)) {
      const size = typeof value === 'object' && value !== null ? Object.keys(value).length : 0;
      const most = keyword === 'enum' || isLiterals(value) ? enumValuesMax : keywordSubschemasMax;
      const isCounted = keyword === 'enum' || (Array.isArray(value) && !dataKeywords.has(keyword));
      if ((isCounted || mapKeywords.has(keyword)) && size > most)
        mistakes.push(
          `${path}.${keyword} has ${size.toLocaleString('en')} entries; at most ${most.toLocaleString('en')} are allowed`,
        );
    }
    if (typeof node.multipleOf === 'number' && !(node.multipleOf > 0))
      mistakes.push(`${path}.multipleOf must be greater than 0`);
    if (mistakes.length === 0)
      for (const [name, part] of partsOf(node))
        if (!isLiteral(part)) left.push([path + name, part, level + 1]);
  }
  return mistakes;
}

/** A reference is a check of its own here, which does not tell which members it evaluated. */
function unevaluatedMistake(root: SchemaNode, place: string): string | undefined {
  const found = new Set<string>();
  eachNode(root, (node) => {
    if (typeof node.$ref === 'string') found.add('$ref');
    if (isNode(node.unevaluatedProperties)) found.add('unevaluatedProperties');
    if ('unevaluatedItems' in node) found.add('unevaluatedItems');
  });
  if (!found.delete('$ref') || found.size === 0) return undefined;
  return `${place} has ${[...found].join(' and ')} beside $ref, which Comity does not support; unevaluatedProperties may be false`;
}

/** Subschemas that apply to the same value as the schema itself. */
function inPlace(node: SchemaNode, named: ReadonlyMap<string, unknown>): readonly SchemaNode[] {
  const { $ref, allOf, anyOf, oneOf, not, dependentSchemas } = node;
  const dependent = isNode(dependentSchemas) ? Object.values(dependentSchemas) : [];
  const referred = typeof $ref === 'string' ? named.get($ref) : undefined;
  const parts = [referred, allOf, anyOf, oneOf, not, node.if, node.then, node.else, ...dependent];
  return parts.flat().filter((part) => isNode(part) && !isLiteral(part)) as readonly SchemaNode[];
}

/** Finds a schema that a value would be checked against without end, or too often. */
function loopMistake(root: SchemaNode, place: string): string | undefined {
  const named = namedSchemas(root);
  const counts = new Map<SchemaNode, number>();
  const count = (node: SchemaNode, level = 1): number => {
    const known = counts.get(node);
    if (known !== undefined) return known;
    if (level > schemaLevelsMax) return subschemasMax + 1;
    counts.set(node, Number.POSITIVE_INFINITY);
    const sum = inPlace(node, named).reduce((total, part) => total + count(part, level + 1), 1);
    counts.set(node, sum);
    return sum;
  };
  let mistake: string | undefined;
  eachNode(root, (node) => {
    if (mistake !== undefined || count(node) <= subschemasMax) return;
    const reference = [...named].find(([, target]) => isNode(target) && count(target) > subschemasMax)?.[0];
    mistake =
      count(node) === Number.POSITIVE_INFINITY
        ? `${place} refers to "${reference}" from within, for the same value: a check would not end; put a member or an item between`
        : `${place} checks a value against more than ${subschemasMax.toLocaleString('en')} schemas at "${reference ?? '#'}"`;
  });
  return mistake;
}

const defaultFaultsShownMax = 3;

function defaultMistakes(root: SchemaNode, place: string, compiled: CompiledSchema): readonly string[] {
  const mistakes: string[] = [];
  const left: (readonly [path: string, node: SchemaNode])[] = [[place, root]];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [path, node] = next;
    for (const [name, part] of partsOf(node)) if (name !== '.not') left.push([path + name, part]);
    const isFit = !Object.hasOwn(node, 'default') || compiled.fits(node, node.default);
    if (isFit && node.format === 'date-time') mistakes.push(...instantMistakes(node, brief(path)));
    if (isFit) continue;
    for (const { pointer, message } of compiled.faultsOf(node, node.default, defaultFaultsShownMax))
      mistakes.push(
        `${brief(path)}.default${pointer} ${shown(node.default)} does not fit its own schema: ${message}`,
      );
  }
  return mistakes;
}

/** As instants are kept (model/timestamp.ts). */
const instantCharactersMin = 24;

function instantMistakes(node: SchemaNode, path: string): readonly string[] {
  const { maxLength, default: standard } = node;
  const mistakes: string[] = [];
  if (typeof maxLength === 'number' && maxLength < instantCharactersMin)
    mistakes.push(
      `${path}.maxLength ${maxLength} leaves no room for a date-time, which is kept with 24 to 30 characters`,
    );
  if (
    typeof standard === 'string' &&
    !('const' in node || 'enum' in node) &&
    keptInstant(standard) === undefined
  )
    mistakes.push(`${path}.default ${shown(standard)} is not ${instantWords}`);
  return mistakes;
}

const shownCharactersMax = 64;

function shown(value: unknown): string {
  return brief(JSON.stringify(value) ?? String(value));
}

function brief(text: string): string {
  return text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}...` : text;
}

type Refuse = (predicate: string) => void;
type Schema = Readonly<Record<string, unknown>>;

const methods: ReadonlySet<unknown> = new Set(['POST', 'PUT', 'PATCH']);
const mediaRange = /^[a-z0-9!#$&^_.+-]+\/(?:\*|[a-z0-9!#$&^_.+-]+)$/;
const filesMax = 1000;
const megabyte = 1024 * 1024;
/** All files of a request together: as many octets as any setting allows for content. */
const bytesMax = 256 * megabyte;

/** The place of the first file within a schema, as a path of members; undefined: it has none. */
export function uploadWithin(schema: unknown, place: string): string | undefined {
  if (uploadRule(schema) !== undefined) return place;
  if (Array.isArray(schema)) return firstOf(schema.entries(), place);
  return isRecord(schema) ? firstOf(Object.entries(schema), place) : undefined;
}

function firstOf(parts: Iterable<readonly [string | number, unknown]>, place: string): string | undefined {
  for (const [name, part] of parts) {
    const found = uploadWithin(part, name === 'properties' ? place : `${place}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** @param input an object with properties */
export function inspectUploads(input: Schema, method: unknown, refuse: Refuse): void {
  let bytes = 0;
  const { properties, ...rest } = input;
  for (const [name, member] of Object.entries(properties as Schema)) {
    const place = `input.${name}`;
    const items = isRecord(member) && member.type === 'array' ? member.items : undefined;
    const upload = uploadRule(items ?? member);
    if (upload === undefined) {
      refuseElsewhere(uploadWithin(member, place), refuse);
      continue;
    }
    if (!methods.has(method)) refuse(`${place} is an upload, which only POST, PUT and PATCH take`);
    inspectRule(upload, place, refuse);
    const count = items === undefined ? 1 : (member as Schema).maxItems;
    if (typeof count === 'number' && Number.isInteger(count) && count >= 1 && count <= filesMax)
      bytes += count * upload.bytesMax;
    else
      refuse(
        `${place} must have maxItems, a whole number from 1 to ${filesMax}, because it is a list of uploads`,
      );
  }
  refuseElsewhere(uploadWithin(rest, 'input'), refuse);
  if (bytes > bytesMax)
    refuse(`input takes uploads of ${bytes} bytes together, and at most ${bytesMax} are possible`);
}

function refuseElsewhere(place: string | undefined, refuse: Refuse): void {
  if (place !== undefined)
    refuse(`${place} is an upload: it must be a member of the input, or the items of a list that is one`);
}

function inspectRule(rule: unknown, place: string, refuse: Refuse): void {
  const { bytesMax: bytes, mediaTypes = ['*'] } = rule as Schema;
  if (typeof bytes !== 'number' || !Number.isInteger(bytes) || bytes < 1 || bytes > bytesMax)
    refuse(`${place}: upload needs bytesMax, a whole number from 1 to ${bytesMax}, not ${asJson(bytes)}`);
  if (!Array.isArray(mediaTypes) || mediaTypes.length === 0)
    refuse(`${place}: mediaTypes of upload must be a list of types such as image/png or image/*`);
  else {
    for (const type of (rule as Schema).mediaTypes === undefined ? [] : mediaTypes) {
      if (typeof type !== 'string' || !mediaRange.test(type))
        refuse(
          `${place}: mediaTypes of upload takes types such as image/png or image/*, not ${asJson(type)}`,
        );
    }
  }
}

function asJson(value: unknown): string {
  return JSON.stringify(value) ?? kindOf(value);
}

/**
 * Finds what the schema of a declaration may not be: too large, with references that lead nowhere or around in a circle, or with defaults
 * that do not fit. The bounds keep compiling it, and checking a document, within the stack and within milliseconds.
 */
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

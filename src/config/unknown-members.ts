/**
 * Finds unknown members of a document with a composed schema (`allOf`, `anyOf`, `oneOf`, `if`, `dependentSchemas`, `$ref`): members that none
 * of the subschemas which apply to the object declares. This is `unevaluatedProperties: false` at every object (JSON Schema 2020-12 core
 * §11.3), also where several subschemas declare members of one nested object.
 *
 * TypeBox's own `unevaluatedProperties` is not used: it treats arrays as objects, and accepts members that only a failed `if` declares.
 */
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { FieldError } from '../http/problem.ts';
import { formatJsonPointer } from '../http/syntax/json-pointer.ts';
import { eachNode, isNode, namedSchemas, type SchemaNode } from './schema-references.ts';

export type FindUnknownMembers = (value: unknown) => readonly FieldError[];

/** An object schema with one of these decides about further members itself. */
const opening = ['additionalProperties', 'unevaluatedProperties', 'patternProperties'] as const;

/** Whether several schemas can apply to one object, so that none can be closed by itself. */
export function isComposed(root: SchemaNode): boolean {
  let composed = false;
  eachNode(root, (node) => {
    const alternatives = [node.anyOf, node.oneOf].filter(Array.isArray).flat();
    const ofObjects = alternatives.filter(mayDescribeObject).length + (isNode(node.properties) ? 1 : 0);
    composed ||= ['allOf', '$ref', 'if', 'dependentSchemas'].some((keyword) => keyword in node);
    composed ||= alternatives.length > 0 && ofObjects > 1;
  });
  return composed;
}

function mayDescribeObject(part: unknown): boolean {
  return (
    isNode(part) && (part.type === undefined ? !('const' in part || 'enum' in part) : part.type === 'object')
  );
}

/** @param root a schema whose references all resolve */
export function compileUnknownMembers(root: SchemaNode, errorsMax: number): FindUnknownMembers {
  const named = namedSchemas(root);
  const conditions = compileConditions(root, named);
  return (value) => {
    const errors: FieldError[] = [];
    new Search(named, conditions, errors, errorsMax).visit([root], value, []);
    return errors;
  };
}

type Conditions = ReadonlyMap<SchemaNode, (value: unknown) => boolean>;

/** Compiles a check for each subschema that applies conditionally. */
function compileConditions(root: SchemaNode, named: ReadonlyMap<string, unknown>): Conditions {
  const $defs = definitions(root, named);
  const conditions = new Map<SchemaNode, (value: unknown) => boolean>();
  eachNode(root, (node) => {
    for (const part of [node.anyOf, node.oneOf, node.if].flat()) {
      if (!isNode(part)) continue;
      const target = part.$ref === '#' ? root : part;
      const compiled = Compile({ ...keepMarks(withoutWhole(target)), $defs } as TSchema);
      conditions.set(part, (value) => compiled.Check(value));
    }
  });
  return conditions;
}

const wholeName = 'whole-schema';
const wholeReference = `#/$defs/${wholeName}`;

/** The definitions that subschemas refer to, and the whole schema under a name: `#` in a subschema would mean that subschema. */
function definitions(root: SchemaNode, named: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const { $defs, ...whole } = root;
  const all: Record<string, unknown> = isNode($defs) ? { ...$defs } : {};
  for (const [reference, schema] of named) if (!reference.startsWith('#')) all[reference] ??= schema;
  for (const [name, schema] of Object.entries(all)) all[name] = withoutWhole(schema);
  all[wholeName] = withoutWhole(whole);
  return all;
}

function withoutWhole(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutWhole);
  if (!isNode(schema)) return schema;
  const copy: Record<string, unknown> = keepMarks(schema);
  for (const [keyword, value] of Object.entries(schema)) {
    copy[keyword] = keyword === '$ref' && value === '#' ? wholeReference : withoutWhole(value);
  }
  return copy;
}

/** TypeBox keeps internal data in properties that are not enumerable. */
function keepMarks(schema: unknown): Record<string, unknown> {
  return isNode(schema) ? Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema)) : {};
}

class Search {
  readonly #named: ReadonlyMap<string, unknown>;
  readonly #conditions: Conditions;
  readonly #errors: FieldError[];
  readonly #errorsMax: number;

  constructor(
    named: ReadonlyMap<string, unknown>,
    conditions: Conditions,
    errors: FieldError[],
    errorsMax: number,
  ) {
    this.#named = named;
    this.#conditions = conditions;
    this.#errors = errors;
    this.#errorsMax = errorsMax;
  }

  /** @param schemas all schemas that apply to the value */
  visit(schemas: readonly unknown[], value: unknown, path: readonly string[]): void {
    if (typeof value !== 'object' || value === null || this.#errors.length >= this.#errorsMax) return;
    const applying = new Set<SchemaNode>();
    let decided = true;
    for (const schema of schemas) decided = this.#apply(schema, value, applying) && decided;
    const nodes = [...applying];
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) {
        this.visit(
          nodes.flatMap((node) => itemSchemas(node, index)),
          item,
          [...path, String(index)],
        );
      }
      return;
    }
    const isClosed =
      decided &&
      nodes.some((node) => isNode(node.properties)) &&
      !nodes.some((node) => opening.some((keyword) => keyword in node));
    for (const name of Object.keys(value)) {
      const declared = nodes.flatMap((node) => memberSchemas(node, name));
      if (declared.length > 0) this.visit(declared, (value as SchemaNode)[name], [...path, name]);
      else if (isClosed && this.#errors.length < this.#errorsMax) {
        this.#errors.push({ pointer: formatJsonPointer([...path, name]), message: 'unknown property' });
      }
    }
  }

  /**
   * Adds the schema and all subschemas that apply to the value.
   * @returns false if no alternative matches: the document is invalid, and the members of the right one are unknown
   */
  #apply(schema: unknown, value: object, into: Set<SchemaNode>): boolean {
    if (!isNode(schema) || into.has(schema)) return true;
    into.add(schema);
    let decided = true;
    const add = (part: unknown) => {
      decided = this.#apply(part, value, into) && decided;
    };
    if (typeof schema.$ref === 'string') add(this.#named.get(schema.$ref));
    if (Array.isArray(schema.allOf)) schema.allOf.forEach(add);
    for (const parts of [schema.anyOf, schema.oneOf]) {
      if (!Array.isArray(parts)) continue;
      const fitting = parts.filter((part) => this.#fits(part, value));
      if (fitting.length === 0) decided = false;
      fitting.forEach(add);
    }
    if (schema.if !== undefined) {
      if (this.#fits(schema.if, value)) for (const part of [schema.if, schema.then]) add(part);
      else add(schema.else);
    }
    if (isNode(schema.dependentSchemas) && isNode(value)) {
      for (const [name, part] of Object.entries(schema.dependentSchemas))
        if (Object.hasOwn(value, name)) add(part);
    }
    return decided;
  }

  #fits(part: unknown, value: unknown): boolean {
    return isNode(part) ? (this.#conditions.get(part)?.(value) ?? true) : part !== false;
  }
}

function memberSchemas(node: SchemaNode, name: string): readonly unknown[] {
  const found: unknown[] = [];
  if (isNode(node.properties) && Object.hasOwn(node.properties, name)) found.push(node.properties[name]);
  if (isNode(node.patternProperties)) {
    for (const [pattern, schema] of Object.entries(node.patternProperties)) {
      if (new RegExp(pattern, 'u').test(name)) found.push(schema);
    }
  }
  if (found.length === 0 && isNode(node.additionalProperties)) found.push(node.additionalProperties);
  return found;
}

function itemSchemas(node: SchemaNode, index: number): readonly unknown[] {
  const first = Array.isArray(node.prefixItems)
    ? node.prefixItems
    : Array.isArray(node.items)
      ? node.items
      : [];
  if (index < first.length) return [first[index]];
  return isNode(node.items) ? [node.items] : isNode(node.additionalItems) ? [node.additionalItems] : [];
}

/**
 * Finds unknown members of a document with a composed schema (`allOf`, `anyOf`, `oneOf`, `if`, `dependentSchemas`, `$ref`): members that none
 * of the subschemas which apply to the object declares. This is `unevaluatedProperties: false` at every object (JSON Schema 2020-12 core
 * §11.3), also where several subschemas declare members of one nested object.
 *
 * TypeBox's own `unevaluatedProperties` is not used: it treats arrays as objects, and accepts members that only a failed `if` declares.
 */
import type { FieldError } from '../http/problem.ts';
import { formatJsonPointer } from '../http/syntax/json-pointer.ts';
import { type CompiledSchema, eachNode, isNode, type SchemaNode } from './declared-schema.ts';

export type FindUnknownMembers = (value: unknown) => readonly FieldError[];

/** True if the schema of an object decides about members that it does not declare itself. */
export function decidesFurther(node: SchemaNode): boolean {
  return (
    'additionalProperties' in node ||
    ('unevaluatedProperties' in node && node.unevaluatedProperties !== false)
  );
}

/** True if the schema says which members an object has, by their names or by patterns for them. */
export function declaresMembers(node: SchemaNode): boolean {
  return isNode(node.properties) || isNode(node.patternProperties) || node.unevaluatedProperties === false;
}

/** True if several schemas can apply to one object, so that none can be closed by itself. */
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

/** @param compiled the check of the schema, which decides between alternatives */
export function compileUnknownMembers(
  root: SchemaNode,
  compiled: CompiledSchema,
  errorsMax: number,
): FindUnknownMembers {
  const applying = new Applying(compiled);
  return (value) => {
    const errors: FieldError[] = [];
    new Search(applying, errors, errorsMax).visit([root], value, []);
    return errors;
  };
}

class Search {
  readonly #applying: Applying;
  readonly #errors: FieldError[];
  readonly #errorsMax: number;

  constructor(applying: Applying, errors: FieldError[], errorsMax: number) {
    this.#applying = applying;
    this.#errors = errors;
    this.#errorsMax = errorsMax;
  }

  /** @param schemas all schemas that apply to the value */
  visit(schemas: readonly unknown[], value: unknown, path: readonly string[]): void {
    if (typeof value !== 'object' || value === null || this.#errors.length >= this.#errorsMax) return;
    const { nodes, decided } = this.#applying.to(schemas, value);
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
    const isClosed = decided && nodes.some(declaresMembers) && !nodes.some(decidesFurther);
    for (const name of Object.keys(value)) {
      const declared = nodes.flatMap((node) => memberSchemas(node, name));
      if (declared.length > 0) this.visit(declared, (value as SchemaNode)[name], [...path, name]);
      else if (isClosed && this.#errors.length < this.#errorsMax) {
        this.#errors.push({ pointer: formatJsonPointer([...path, name]), message: 'unknown property' });
      }
    }
  }
}

/** The schemas that apply to an object or an array, out of those declared for it. */
export class Applying {
  readonly compiled: CompiledSchema;

  /** @param compiled the check of the schema, which decides between alternatives */
  constructor(compiled: CompiledSchema) {
    this.compiled = compiled;
  }

  /** `decided`: an alternative matches wherever there are several. */
  to(
    schemas: readonly unknown[],
    value: object,
  ): { readonly nodes: SchemaNode[]; readonly decided: boolean } {
    const nodes = new Set<SchemaNode>();
    let decided = true;
    for (const schema of schemas) decided = this.#apply(schema, value, nodes) && decided;
    return { nodes: [...nodes], decided };
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
    if (typeof schema.$ref === 'string') add(this.compiled.referred(schema.$ref));
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
    return isNode(part) ? this.compiled.fits(part, value) : part !== false;
  }
}

export function memberSchemas(node: SchemaNode, name: string): readonly unknown[] {
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

export function itemSchemas(node: SchemaNode, index: number): readonly unknown[] {
  const first = Array.isArray(node.prefixItems)
    ? node.prefixItems
    : Array.isArray(node.items)
      ? node.items
      : [];
  if (index < first.length) return [first[index]];
  return isNode(node.items) ? [node.items] : isNode(node.additionalItems) ? [node.additionalItems] : [];
}

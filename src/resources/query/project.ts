/**
 * A stored representation reduced to the selected members. What is absent stays absent; a nested field keeps the
 * objects around it. Reads by id and lists without `fields` never come here: their bytes are served as stored.
 */
import type { Field } from '../../model/field.ts';

type Node = { [name: string]: unknown };

/** @param doc a JSON object as stored */
export function project(doc: string, select: readonly Field[]): string {
  const whole: unknown = JSON.parse(doc);
  const result: Node = {};
  for (const { path } of select) copy(path, whole, result);
  return JSON.stringify(result);
}

function copy(path: readonly string[], from: unknown, into: Node): void {
  let source = from;
  const found: unknown[] = [];
  for (const name of path) {
    if (!isNode(source) || !Object.hasOwn(source, name)) return;
    source = source[name];
    found.push(source);
  }
  let target = into;
  for (const [index, name] of path.entries()) {
    const value = found[index];
    if (index === path.length - 1) define(target, name, value);
    else {
      const known = Object.hasOwn(target, name) ? target[name] : undefined;
      const next = isNode(known) ? known : {};
      define(target, name, next);
      target = next;
    }
  }
}

/** Assigning would call the setter of a name such as `__proto__`. */
function define(target: Node, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true });
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

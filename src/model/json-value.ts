/**
 * JSON values as JSON.parse returns them: type test, comparison, copy. Members are found by `Object.hasOwn` only, so
 * that a property of the prototype never counts as data.
 */
import type { Json } from '../http/syntax/json.ts';

export type Members = { [name: string]: Json };

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Compares by RFC 6902 §4.6: numbers by value, objects regardless of the order of their members. */
export function equalJson(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false;
    for (let index = 0; index < left.length; index += 1) {
      if (!equalJson(left[index], right[index])) return false;
    }
    return true;
  }
  if (!isMembers(left) || !isMembers(right)) return false;
  const names = Object.keys(left);
  if (names.length !== Object.keys(right).length) return false;
  for (const name of names) {
    if (!Object.hasOwn(right, name) || !equalJson(left[name], right[name])) return false;
  }
  return true;
}

export function copyJson(value: Json): Json {
  if (Array.isArray(value)) return value.map(copyJson);
  if (!isMembers(value)) return value;
  const copy: Members = {};
  for (const name of Object.keys(value)) setMember(copy, name, copyJson(value[name] ?? null));
  return copy;
}

export function ownMember(members: Members, name: string): Json | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

/** Sets a member of any name; a plain assignment to `__proto__` would change the prototype. */
export function setMember(members: Members, name: string, value: Json): void {
  if (name === '__proto__') {
    Object.defineProperty(members, name, { value, enumerable: true, configurable: true, writable: true });
  } else members[name] = value;
}

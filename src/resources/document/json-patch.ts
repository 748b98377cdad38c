/**
 * JSON Patch: RFC 6902, applied to a copy, so that a patch takes effect whole or not at all (§4.6).
 * The document is checked in json-patch-document.ts first.
 *
 * Our own instead of the package rfc6902, which fails two points of the official suite (add and replace of the whole
 * document), takes `-` for the index of an existing item, and lets a chain of copies grow without bound.
 */
import type { Problem } from '../../http/problem.ts';
import type { Json } from '../../http/syntax/json.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import { type Operation, readJsonPatch } from './json-patch-document.ts';
import { copyJson, equalJson, isMembers, ownMember, setMember } from './json-value.ts';

export type PatchLimits = {
  /** Operations in one patch. */
  readonly operationsMax: number;
  /** Levels of arrays and objects in the result, and at every step. */
  readonly depthMax: number;
  /**
   * What all operations together may copy and move, in characters of text and items of arrays: twenty copies of
   * a document into itself would otherwise make a million of it.
   */
  readonly movedMax: number;
};

export const patchLimitsDefault: PatchLimits = { operationsMax: 1000, depthMax: 64, movedMax: 4_000_000 };

export type Patched =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly problem: Problem };

/**
 * Applies the operations in order. `patch_malformed` for a document that is no patch; `patch_not_applicable`, naming
 * the operation by its index, when a place is missing, a test fails or a limit is passed.
 */
export function jsonPatch(target: Json, operations: unknown, limits: PatchLimits): Patched {
  const read = readJsonPatch(operations, limits.operationsMax);
  if (!read.ok) return read;
  const patching = new Patching(copyJson(target), limits);
  for (const [index, operation] of read.operations.entries()) {
    const fault = patching.apply(operation);
    if (fault !== undefined) return { ok: false, problem: notApplicable(index, operation, fault) };
  }
  return { ok: true, value: patching.root };
}

const missing = 'there is no value at this place';
const missingParent = 'there is no array or object to hold this place';
const tooMuch = 'the patch copies or moves too much';
const tooDeep = 'the document would be nested too deeply';

/** One document while it is patched. Each method answers undefined when it is done, or why it cannot be. */
class Patching {
  root: Json;
  readonly #depthMax: number;
  #left: number;

  constructor(root: Json, limits: PatchLimits) {
    this.root = root;
    this.#depthMax = limits.depthMax;
    this.#left = limits.movedMax;
  }

  apply(operation: Operation): string | undefined {
    switch (operation.op) {
      case 'add':
        return this.#add(operation.path, copyJson(operation.value));
      case 'remove':
        return this.#remove(operation.path);
      case 'replace':
        return this.#replace(operation.path, copyJson(operation.value));
      case 'test':
        return this.#test(operation.path, operation.value);
      case 'copy':
        return this.#copy(operation.from, operation.path);
      case 'move':
        return this.#move(operation.from, operation.path);
    }
  }

  #add(path: readonly string[], value: Json): string | undefined {
    return this.#refuseSize(path, value) ?? this.#insert(path, value);
  }

  #insert(path: readonly string[], value: Json): string | undefined {
    const name = path.at(-1);
    if (name === undefined) {
      this.root = value;
      return undefined;
    }
    const parent = this.#at(path, path.length - 1);
    if (Array.isArray(parent)) {
      const index = name === '-' ? parent.length : arrayIndex(name);
      if (index === undefined || index > parent.length) return 'this is no index of the array or its end';
      this.#charge((parent.length - index) >> 5);
      if (this.#left < 0) return tooMuch;
      parent.splice(index, 0, value);
      return undefined;
    }
    if (!isMembers(parent)) return missingParent;
    if (name === '__proto__') return 'a member may not be named __proto__';
    parent[name] = value;
    return undefined;
  }

  #remove(path: readonly string[]): string | undefined {
    const name = path.at(-1);
    if (name === undefined) return 'the whole document may not be removed';
    const parent = this.#at(path, path.length - 1);
    if (Array.isArray(parent)) {
      const index = arrayIndex(name);
      if (index === undefined || index >= parent.length) return missing;
      this.#charge((parent.length - index) >> 5);
      if (this.#left < 0) return tooMuch;
      parent.splice(index, 1);
      return undefined;
    }
    if (!isMembers(parent) || !Object.hasOwn(parent, name)) return missing;
    delete parent[name];
    return undefined;
  }

  #replace(path: readonly string[], value: Json): string | undefined {
    if (this.#at(path) === undefined) return missing;
    const refusal = this.#refuseSize(path, value);
    if (refusal !== undefined) return refusal;
    const name = path.at(-1);
    const parent = name === undefined ? undefined : this.#at(path, path.length - 1);
    if (name === undefined) this.root = value;
    else if (Array.isArray(parent)) parent[Number(name)] = value;
    else if (isMembers(parent)) setMember(parent, name, value);
    return undefined;
  }

  #test(path: readonly string[], value: Json): string | undefined {
    const standing = this.#at(path);
    if (standing === undefined) return missing;
    return equalJson(standing, value) ? undefined : 'the test fails';
  }

  #copy(from: readonly string[], path: readonly string[]): string | undefined {
    const value = this.#at(from);
    if (value === undefined) return `${missing}: ${formatJsonPointer(from)}`.slice(0, faultCharactersMax);
    return this.#refuseSize(path, value) ?? this.#insert(path, copyJson(value));
  }

  #move(from: readonly string[], path: readonly string[]): string | undefined {
    const value = this.#at(from);
    if (value === undefined) return `${missing}: ${formatJsonPointer(from)}`.slice(0, faultCharactersMax);
    if (isPrefix(from, path)) {
      return from.length === path.length ? undefined : 'a value may not be moved into itself';
    }
    return this.#remove(from) ?? this.#add(path, value);
  }

  /** The value at the first `length` tokens of the path; undefined when nothing is there. */
  #at(path: readonly string[], length: number = path.length): Json | undefined {
    let value: Json | undefined = this.root;
    for (let step = 0; step < length && value !== undefined; step += 1) {
      const token = path[step] ?? '';
      if (Array.isArray(value)) {
        const index = arrayIndex(token);
        value = index === undefined ? undefined : value[index];
      } else value = isMembers(value) ? ownMember(value, token) : undefined;
    }
    return value;
  }

  /** Charges the value to what may be moved; answers why it may not stand at the path, if so. */
  #refuseSize(path: readonly string[], value: Json): string | undefined {
    const levels = this.#levels(value);
    if (this.#left < 0) return tooMuch;
    return path.length + levels > this.#depthMax ? tooDeep : undefined;
  }

  #levels(value: Json): number {
    this.#charge(typeof value === 'string' ? value.length + 1 : 1);
    if (typeof value !== 'object' || value === null || this.#left < 0) return 0;
    let deepest = 0;
    if (Array.isArray(value)) {
      for (const item of value) deepest = Math.max(deepest, this.#levels(item));
    } else {
      for (const name of Object.keys(value)) {
        this.#charge(name.length);
        deepest = Math.max(deepest, this.#levels(value[name] ?? null));
      }
    }
    return deepest + 1;
  }

  #charge(amount: number): void {
    this.#left -= amount;
  }
}

const faultCharactersMax = 160;

/** An array index as RFC 6901 §4 writes it: no sign, no leading zero. */
function arrayIndex(token: string): number | undefined {
  if (token.length === 0 || token.length > 10) return undefined;
  if (token.length > 1 && token.charCodeAt(0) === 0x30) return undefined;
  let index = 0;
  for (let at = 0; at < token.length; at += 1) {
    const digit = token.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    index = index * 10 + digit;
  }
  return index;
}

function isPrefix(from: readonly string[], path: readonly string[]): boolean {
  return from.length <= path.length && from.every((token, index) => token === path[index]);
}

function notApplicable(index: number, operation: Operation, fault: string): Problem {
  const path = formatJsonPointer(operation.path).slice(0, faultCharactersMax);
  return {
    code: 'patch_not_applicable',
    message: `operation ${index} (${operation.op} ${JSON.stringify(path)}) cannot be applied: ${fault}`,
    context: { operation: index },
    errors: [{ pointer: `/${index}`, message: fault }],
  };
}

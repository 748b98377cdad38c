/**
 * JSON Patch (RFC 6902), applied to a copy, so that a patch takes effect whole or not at all (§4.6). Not the package
 * rfc6902: it fails two cases of the official suite (add and replace of the whole document), accepts `-` as the index
 * of an existing item, and lets a chain of copies grow without bound.
 */
import type { Settings } from '../../config/settings.ts';
import type { FieldError, Problem } from '../../http/problem.ts';
import type { Json } from '../../http/syntax/json.ts';
import { formatJsonPointer, parseJsonPointer } from '../../http/syntax/json-pointer.ts';
import {
  copyJson,
  equalJson,
  isMembers,
  type Members,
  ownMember,
  setMember,
} from '../../model/json-value.ts';

export type PatchLimits = {
  readonly operationsMax: number;
  /** Levels of arrays and objects after every operation. */
  readonly depthMax: number;
  /** Characters and items that all operations together may copy and move; a chain of copies grows exponentially. */
  readonly movedMax: number;
};

export const patchLimitsDefault: PatchLimits = { operationsMax: 1000, depthMax: 64, movedMax: 4_000_000 };

/** Patches have the depth limit of content. */
export function patchLimitsOf({
  patchOperationsMax,
  jsonDepthMax,
}: Pick<Settings, 'patchOperationsMax' | 'jsonDepthMax'>): PatchLimits {
  return { ...patchLimitsDefault, operationsMax: patchOperationsMax, depthMax: jsonDepthMax };
}

export type Patched =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly problem: Problem };

/**
 * Applies the operations in order. Refuses a malformed patch with `patch_malformed`, and with `patch_not_applicable` an
 * operation whose path is missing, whose test fails or that passes a limit.
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

const missing = 'there is no value at this path';
const missingParent = 'the parent of this path is not an array or object';

/** A document during a patch. Each method returns undefined on success, or the reason for a refusal. */
class Patching {
  root: Json;
  readonly #depthMax: number;
  readonly #tooMuch: string;
  #left: number;

  constructor(root: Json, limits: PatchLimits) {
    this.root = root;
    this.#depthMax = limits.depthMax;
    this.#left = limits.movedMax;
    this.#tooMuch = `the patch copies or moves more than ${limits.movedMax} characters and items`;
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
      if (index === undefined || index > parent.length)
        return 'the last token must be an index of the array, or - for its end';
      this.#charge((parent.length - index) >> 5);
      if (this.#left < 0) return this.#tooMuch;
      parent.splice(index, 0, value);
      return undefined;
    }
    if (!isMembers(parent)) return missingParent;
    if (name === '__proto__') return 'a member must not be named __proto__';
    parent[name] = value;
    return undefined;
  }

  #remove(path: readonly string[]): string | undefined {
    const name = path.at(-1);
    if (name === undefined) return 'the whole document cannot be removed';
    const parent = this.#at(path, path.length - 1);
    if (Array.isArray(parent)) {
      const index = arrayIndex(name);
      if (index === undefined || index >= parent.length) return missing;
      this.#charge((parent.length - index) >> 5);
      if (this.#left < 0) return this.#tooMuch;
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
    return equalJson(standing, value) ? undefined : 'the value is not equal to that of the test';
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
      return from.length === path.length ? undefined : 'a value cannot be moved into itself';
    }
    return this.#remove(from) ?? this.#add(path, value);
  }

  /** Returns the value at the first `length` tokens of the path; undefined if there is none. */
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

  /** Counts the value against `movedMax`; returns the reason if it may not be placed at the path. */
  #refuseSize(path: readonly string[], value: Json): string | undefined {
    const levels = this.#levels(value);
    if (this.#left < 0) return this.#tooMuch;
    return path.length + levels > this.#depthMax
      ? `the document would nest deeper than ${this.#depthMax} levels`
      : undefined;
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

/** Reads an array index (RFC 6901 §4): no sign, no leading zero. */
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

type Path = readonly string[];

type Operation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: Path; readonly value: Json }
  | { readonly op: 'remove'; readonly path: Path }
  | { readonly op: 'move' | 'copy'; readonly path: Path; readonly from: Path };

type ReadJsonPatch =
  | { readonly ok: true; readonly operations: readonly Operation[] }
  | { readonly ok: false; readonly problem: Problem };

const faultsMax = 20;

/**
 * Reads the operations (RFC 6902 §3, §4); reports up to twenty malformed ones, and ignores unknown members as §4
 * requires.
 */
function readJsonPatch(document: unknown, operationsMax: number): ReadJsonPatch {
  if (!Array.isArray(document))
    return malformed([{ pointer: '', message: 'must be an array of operations' }]);
  if (document.length > operationsMax) {
    return malformed([{ pointer: '', message: `must have at most ${operationsMax} operations` }]);
  }
  const operations: Operation[] = [];
  const faults: FieldError[] = [];
  for (const [index, value] of document.entries()) {
    const operation = readOperation(value, `/${index}`);
    if ('pointer' in operation) faults.push(operation);
    else operations.push(operation);
    if (faults.length === faultsMax) break;
  }
  return faults.length === 0 ? { ok: true, operations } : malformed(faults);
}

function readOperation(value: unknown, at: string): Operation | FieldError {
  if (!isMembers(value)) return { pointer: at, message: 'must be an object' };
  const op = ownMember(value, 'op');
  const path = readPointer(value, 'path');
  const known =
    op === 'add' || op === 'replace' || op === 'test' || op === 'remove' || op === 'move' || op === 'copy';
  if (!known) {
    return { pointer: `${at}/op`, message: 'must be "add", "remove", "replace", "move", "copy" or "test"' };
  }
  if (path === undefined) return { pointer: `${at}/path`, message: 'must be a JSON Pointer' };
  if (op === 'remove') return { op, path };
  if (op === 'move' || op === 'copy') {
    const from = readPointer(value, 'from');
    return from === undefined
      ? { pointer: `${at}/from`, message: 'must be a JSON Pointer' }
      : { op, path, from };
  }
  const operand = ownMember(value, 'value');
  return operand === undefined
    ? { pointer: `${at}/value`, message: 'is required' }
    : { op, path, value: operand };
}

function readPointer(operation: Members, name: 'path' | 'from'): Path | undefined {
  const text = ownMember(operation, name);
  return typeof text === 'string' ? parseJsonPointer(text) : undefined;
}

function malformed(errors: readonly FieldError[]): ReadJsonPatch {
  return { ok: false, problem: { code: 'patch_malformed', errors } };
}

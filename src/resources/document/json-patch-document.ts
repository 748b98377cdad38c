/**
 * The document of a JSON Patch: RFC 6902 §3 and §4. Checks that it is an array of operations with the members each
 * needs; members it does not know are ignored, as §4 asks. Whether an operation can be applied is json-patch.ts's matter.
 */
import type { FieldError, Problem } from '../../http/problem.ts';
import type { Json } from '../../http/syntax/json.ts';
import { parseJsonPointer } from '../../http/syntax/json-pointer.ts';
import { isMembers, type Members, ownMember } from './json-value.ts';

type Path = readonly string[];

export type Operation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: Path; readonly value: Json }
  | { readonly op: 'remove'; readonly path: Path }
  | { readonly op: 'move' | 'copy'; readonly path: Path; readonly from: Path };

export type ReadJsonPatch =
  | { readonly ok: true; readonly operations: readonly Operation[] }
  | { readonly ok: false; readonly problem: Problem };

const faultsMax = 20;

/** Reads the whole document, and names every operation that is malformed (twenty at most). */
export function readJsonPatch(document: unknown, operationsMax: number): ReadJsonPatch {
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

/**
 * Computes the fields that a POST, PUT or PATCH would write, or the refusal (§4.4 to §4.6). Pure functions: the
 * transaction checks uniqueness and references. One refusal lists all faults under the code of the gravest: a member
 * that may not change (400), then a missing field (400), then invalid data (422). In a PATCH, removing a required field
 * is invalid data.
 */

import type { Faults } from '../../config/schema-errors.ts';
import type { FieldError, Problem } from '../../http/problem.ts';
import type { ProblemCode } from '../../http/problem-registry.ts';
import type { Json } from '../../http/syntax/json.ts';
import { valueAt } from '../../http/syntax/json-members.ts';
import { formatJsonPointer, parseJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { PatchContent } from '../../kernel/content/content-shape.ts';
import type { Validator } from '../../kernel/content/validator.ts';
import type { Collection } from '../../model/collection.ts';
import { type FileFields, type FileValue, filesIn } from '../../model/file.ts';
import { equalJson, isMembers, type Members, ownMember, setMember } from '../../model/json-value.ts';
import {
  assignedMembers,
  fixedChanges,
  hiddenNamed,
  keeping,
  madeMembers,
  misstatedMembers,
  readOnlyChanges,
  readOnlyNamed,
  unpatchableChanges,
  unpatchableTargets,
  type Withheld,
  type Writer,
  withheldFrom,
  withoutHidden,
  withTenant,
} from './closed-members.ts';
import { jsonPatch, type Patched, type PatchLimits, patchLimitsDefault } from './json-patch.ts';

type Fields = Readonly<Record<string, unknown>>;

export type Proposable = Pick<
  Collection,
  'schema' | 'fields' | 'unpatchable' | 'tenantField' | 'readOnly' | 'hidden' | 'computed' | 'stamp' | 'files'
>;

export type Proposed =
  /** Fields in the order of the schema, without server-assigned members. `unchanged`: the resource has them already. */
  | { readonly ok: true; readonly fields: Fields; readonly unchanged: boolean }
  | { readonly ok: false; readonly problem: Problem };

/**
 * Refuses an `id` or time given by the client.
 * @param writer undefined: the program itself
 * @param held fields whose files the value may name; absent: none
 */
export function proposeCreate(
  collection: Proposable,
  validator: Validator,
  value: unknown,
  writer?: Writer,
  held?: Members,
): Proposed {
  if (!isMembers(value)) return notAnObject;
  const files = withStoredFiles(collection, held, withInstants(validator, value));
  const given = files.value;
  return proposeNew(collection, validator, given, {
    ...{ refused: assignedMembers(given), unknown: files.faults, writer },
  });
}

/**
 * Proposes the fields after a PUT to the resource `id`: those given, the defaults, and the current values of fields
 * that are closed to the writer. Server-assigned members are accepted if they equal those of `stored`.
 * @param stored the stored representation; undefined if the PUT creates the resource
 */
export function proposeReplace(
  collection: Proposable,
  validator: Validator,
  id: string,
  stored: Fields | undefined,
  content: unknown,
  writer?: Writer,
): Proposed {
  if (!isMembers(content)) return notAnObject;
  const files = withStoredFiles(collection, stored as Members | undefined, withInstants(validator, content));
  const { value } = files;
  if (stored === undefined) {
    return proposeNew(collection, validator, value, {
      ...{ refused: misstatedMembers(value, { id }), unknown: files.faults, writer },
    });
  }
  const current = withInstants(validator, stored as Members);
  const withheld = withheldFrom(collection, writer, current);
  const kept = keptByReplace(
    collection,
    withheld,
    comparable(validator, current),
    comparable(validator, value),
  );
  const fields = orderedFields(collection, keeping(kept, current as Members, filled(validator, value)));
  const refused = [
    ...misstatedMembers(value, current),
    ...fixedChanges(
      collection,
      comparable(validator, filled(validator, current)),
      comparable(validator, fields),
    ),
    ...readOnlyChanges(withheld, comparable(validator, current), comparable(validator, fields)),
  ];
  const unknown = [...hiddenNamed(withheld, value), ...files.faults];
  return (
    judge(validator, fields, { refused, unknown, withheld, codeOfMissing: 'field_missing', current }) ??
    proposal(fields, stored)
  );
}

/**
 * Proposes the fields after a patch of the representation `stored`. The patch sees server-assigned members (so
 * `test /id` works), which it may not change, but not fields hidden from the writer. A removed member takes its default
 * if it has one; a field closed to the writer keeps its value.
 */
export function proposePatch(
  collection: Proposable,
  validator: Validator,
  stored: Fields,
  patch: PatchContent,
  limits: PatchLimits = patchLimitsDefault,
  writer?: Writer,
): Proposed {
  const current = withInstants(validator, stored as Members);
  const withheld = withheldFrom(collection, writer, current);
  const patched = applyPatch(withoutHidden(withheld, current as Members), patch, limits);
  if (!patched.ok) {
    // A patch with both kinds of fault is refused for the graver one.
    const fixed =
      patched.problem.code === 'patch_not_applicable'
        ? unpatchableTargets(collection, withheld, current, patch.value)
        : [];
    return fixed.length === 0
      ? patched
      : { ok: false, problem: { code: 'field_unpatchable', errors: fixed } };
  }
  if (!isMembers(patched.value)) return notAnObject;
  const files = withStoredFiles(collection, current, withInstants(validator, patched.value));
  const seen = files.value;
  const after = keeping(withheld.hidden, current as Members, seen);
  const closed = [...withheld.readOnly, ...withheld.hidden];
  const fields = orderedFields(collection, keeping(closed, after, filled(validator, after)));
  const refused = [
    ...unpatchableChanges(collection, comparable(validator, current), comparable(validator, after)),
    ...readOnlyChanges(withheld, comparable(validator, current), comparable(validator, after)),
  ];
  const unknown = [...hiddenNamed(withheld, seen), ...files.faults];
  return (
    judge(validator, fields, { refused, unknown, withheld, codeOfMissing: 'validation_failed', current }) ??
    proposal(fields, stored)
  );
}

type NewParts = Pick<Judging, 'refused' | 'unknown'> & { readonly writer: Writer | undefined };

function proposeNew(
  collection: Proposable,
  validator: Validator,
  value: Members,
  { refused, unknown, writer }: NewParts,
): Proposed {
  const tenanted = withTenant(collection, writer, value);
  const fields = orderedFields(collection, filled(validator, tenanted.value));
  const withheld = withheldFrom(collection, writer, fields);
  const judged = judge(validator, fields, {
    refused: [...refused, ...tenanted.refused, ...readOnlyNamed(withheld, value)],
    unknown: [...hiddenNamed(withheld, value), ...unknown],
    withheld,
    codeOfMissing: 'field_missing',
    current: undefined,
  });
  return judged ?? proposal(fields, undefined);
}

/** Lists the fields that a PUT leaves as they are: closed ones that it omits or repeats, and the tenant. */
function keptByReplace(
  { tenantField }: Proposable,
  { readOnly, hidden }: Withheld,
  current: Fields,
  value: Members,
): readonly string[] {
  const closed = [...readOnly, ...hidden, ...(tenantField === undefined ? [] : [tenantField])];
  return closed.filter((name) => !Object.hasOwn(value, name) || equalJson(value[name], current[name]));
}

function applyPatch(current: Members, patch: PatchContent, limits: PatchLimits): Patched {
  if (patch.format === 'json-patch') return jsonPatch(current, patch.value, limits);
  if (isMembers(patch.value)) return { ok: true, value: mergePatch(current, patch.value) };
  // RFC 7396 would replace the whole resource by this value; a resource is always an object.
  return { ok: false, problem: { code: 'patch_malformed', message: 'a merge patch must be a JSON object' } };
}

const notAnObject: Proposed = {
  ok: false,
  problem: { code: 'validation_failed', errors: [{ pointer: '', message: 'must be an object' }] },
};

/** With instants as they are kept. */
export function withInstants({ instants }: Pick<Validator, 'instants'>, value: Members): Members {
  const kept = instants?.keep(value) ?? value;
  return isMembers(kept) ? kept : value;
}

/** With each instant in one spelling, so that it is one value to the rules on changes however many digits it has. */
function comparable({ instants }: Pick<Validator, 'instants'>, value: Fields): Members {
  const short = instants?.shorten(value as Members) ?? value;
  return short as Members;
}

function filled(validator: Pick<Validator, 'fillDefaults'>, value: Members): Members {
  const result = validator.fillDefaults?.(value as Json) ?? value;
  return isMembers(result) ? result : value;
}

/** The fields as they are stored: defaults filled in, in the order of the schema, without server-assigned members. */
export function storedFields(
  collection: Pick<Proposable, 'schema'>,
  validator: Pick<Validator, 'fillDefaults'>,
  value: Members,
): Members {
  return orderedFields(collection, filled(validator, value));
}

/**
 * Lists the fields fixed at creation in which an imported document differs from the stored one, as in a PUT (§4.6.3).
 * @param stored its representation
 * @param text the fields that the import gives
 */
export function fixedFaults(
  { collection, validator }: { readonly collection: Proposable; readonly validator: Validator },
  stored: string,
  text: string,
): readonly FieldError[] {
  const differs = (name: string) => !equalJson(valueAt(stored, [name]), valueAt(text, [name]));
  if (![...collection.unpatchable].some(differs)) return [];
  const current = storedFields(collection, validator, JSON.parse(stored) as Members);
  return fixedChanges(collection, current, JSON.parse(text) as Members);
}

type Judging = {
  readonly refused: readonly FieldError[];
  readonly unknown: readonly FieldError[];
  readonly withheld: Withheld;
  readonly codeOfMissing: ProblemCode;
  readonly current: Fields | undefined;
};

function judge(
  validator: Validator,
  fields: Fields,
  { refused, unknown, withheld, codeOfMissing, current }: Judging,
): Proposed | undefined {
  const { missing, invalid } = visibleFaults(validator.check(fields), withheld, current !== undefined);
  if (refused.length + unknown.length + missing.length + invalid.length === 0) return undefined;
  const code =
    refused.length > 0 ? 'field_unpatchable' : missing.length > 0 ? codeOfMissing : 'validation_failed';
  const coded = [
    ...refused.map((error) => ['field_unpatchable', error] as const),
    ...missing.map((error) => [codeOfMissing, error] as const),
    ...[...unknown, ...invalid].map((error) => ['validation_failed', error] as const),
  ].slice(0, validator.errorsMax);
  const errors = coded.map(([, error]) => error);
  const errorCodes = coded.map(([each]) => each);
  const isMixed = errorCodes.some((each) => each !== code);
  return { ok: false, problem: { code, errors, ...(isMixed ? { errorCodes } : {}) } };
}

/**
 * Drops faults in hidden fields, which the writer can neither see nor correct. A missing hidden field of a new resource
 * is still reported, because the resource cannot be created without it.
 */
function visibleFaults(faults: Faults, { hidden }: Withheld, exists: boolean): Faults {
  if (hidden.size === 0) return faults;
  const isOpen = ({ pointer }: FieldError) => !hidden.has(parseJsonPointer(pointer)?.[0] ?? '');
  return {
    missing: exists ? faults.missing.filter(isOpen) : faults.missing,
    invalid: faults.invalid.filter(isOpen),
  };
}

function proposal(fields: Fields, current: Fields | undefined): Proposed {
  return { ok: true, fields, unchanged: current !== undefined && isUnchanged(fields, current) };
}

/** True if the fields equal those of the representation `current`, by JSON value. */
export function isUnchanged(fields: Fields, current: Fields): boolean {
  let count = 0;
  for (const name of Object.keys(current)) {
    if (madeMembers.includes(name)) continue;
    if (!Object.hasOwn(fields, name) || !equalJson(fields[name], current[name])) return false;
    count += 1;
  }
  return count === Object.keys(fields).length;
}

/** Orders the members by the schema, then others as they came; drops server-assigned ones. */
function orderedFields(collection: Pick<Proposable, 'schema'>, value: Members): Members {
  const declared = collection.schema.properties;
  const fields: Members = {};
  let left = Object.keys(value).length;
  for (const name of Object.keys(declared)) {
    const member = Object.hasOwn(value, name) ? value[name] : undefined;
    if (member === undefined) continue;
    fields[name] = member;
    left -= 1;
  }
  if (left === 0) return fields;
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(declared, name) || madeMembers.includes(name)) continue;
    setMember(fields, name, value[name] ?? null);
  }
  return fields;
}

/**
 * JSON Merge Patch (RFC 7396 §2): null removes a member, objects merge, any other value replaces the whole, arrays
 * included. Changes neither argument; the result shares unchanged values with both.
 */
export function mergePatch(target: Json, patch: Json): Json {
  if (!isMembers(patch)) return patch;
  const before: Members = isMembers(target) ? target : {};
  const after: Members = {};
  for (const name of Object.keys(before)) {
    if (ownMember(patch, name) !== null) setMember(after, name, ownMember(before, name) ?? null);
  }
  for (const name of Object.keys(patch)) {
    const value = ownMember(patch, name) ?? null;
    if (value !== null) setMember(after, name, mergePatch(ownMember(before, name) ?? null, value));
  }
  return after;
}

// What a write says about files of the document.

/**
 * Reads what a write says about files: one that is named by its id becomes the file that the field has, null removes the file, and an upload
 * stays to be looked up.
 * @param stored the fields of the document before the write; undefined: there is none
 */
function withStoredFiles(
  { files }: { readonly files?: FileFields },
  stored: Members | undefined,
  value: Members,
): { readonly value: Members; readonly faults: readonly FieldError[] } {
  if (files === undefined) return { value, faults: [] };
  const result: Members = { ...value };
  const faults: FieldError[] = [];
  for (const { name, filesMax } of files.values()) {
    const given = ownMember(value, name);
    if (given === undefined) continue;
    const known = filesIn(stored === undefined ? undefined : ownMember(stored, name));
    if (filesMax === undefined) {
      if (given === null) delete result[name];
      else setMember(result, name, resolved(given, known, [name], faults));
    } else if (Array.isArray(given)) {
      const seen = new Set<string>();
      const items = given.map((item, at) => {
        const pointer = [name, String(at)];
        const id = isMembers(item) ? (item.upload ?? item.id) : undefined;
        if (typeof id === 'string' && seen.has(id))
          faults.push({ pointer: formatJsonPointer(pointer), message: 'names a file a second time' });
        if (typeof id === 'string') seen.add(id);
        return resolved(item, known, pointer, faults);
      });
      setMember(result, name, items);
    }
  }
  return { value: result, faults };
}

/** Values of other kinds are left to the schema. */
function resolved(
  given: Json,
  known: readonly FileValue[],
  place: readonly string[],
  faults: FieldError[],
): Json {
  if (!isMembers(given)) return given;
  const fault = (member: readonly string[], message: string): Json => {
    faults.push({ pointer: formatJsonPointer([...place, ...member]), message });
    return given;
  };
  if (given.upload !== undefined) {
    const { upload, ...others } = given;
    // A merge patch keeps the members of the file that the upload replaces (RFC 7396 §2).
    const replaced = known.find(({ id }) => id === others.id) as Members | undefined;
    const odd = Object.keys(others).find((name) => !equalJson(others[name], replaced?.[name]));
    return odd === undefined ? { upload } : fault([odd], 'cannot stand beside upload');
  }
  if (given.id === undefined)
    return fault([], 'must name a file: { "id": ... } of this field, or { "upload": ... } of an upload');
  if (typeof given.id !== 'string') return given;
  const found = known.find(({ id }) => id === given.id) as Members | undefined;
  if (found === undefined)
    return fault(['id'], 'is not a file of this field: upload the octets, and name the upload');
  const changed = Object.keys(given).find((name) => !equalJson(given[name], found[name]));
  if (changed !== undefined) return fault([changed], 'is set by the upload and cannot be changed');
  return found;
}

/**
 * What a POST, PUT or PATCH would make of a resource, or why it may not (§4.4 to §4.6): pure functions from values to
 * the new fields. The store is not asked here: uniqueness and references are checked in the transaction.
 *
 * One answer lists all faults. Its code is that of the gravest: a member that may not be changed (400) before
 * a missing field (400) before invalid data (422); in a PATCH a required field that is removed is invalid data.
 */
import type { FieldError, Problem } from '../../http/problem.ts';
import type { ProblemCode } from '../../http/problem-registry.ts';
import type { Json } from '../../http/syntax/json.ts';
import type { Collection } from '../../model/collection.ts';
import type { PatchContent } from '../content/parsed.ts';
import { jsonPatch, type Patched, type PatchLimits, patchLimitsDefault } from './json-patch.ts';
import { equalJson, isMembers, type Members, setMember } from './json-value.ts';
import { mergePatch } from './merge-patch.ts';
import {
  assignedMembers,
  fixedChanges,
  madeMembers,
  misstatedMembers,
  unpatchableChanges,
  unpatchableTargets,
} from './unpatchable.ts';
import type { Validator } from './validator.ts';

type Fields = Readonly<Record<string, unknown>>;

export type Proposed =
  /** Fields in the order of the schema, without the members that the server makes. `unchanged`: they already stand so. */
  | { readonly ok: true; readonly fields: Fields; readonly unchanged: boolean }
  | { readonly ok: false; readonly problem: Problem };

/** The fields of a new resource: defaults filled in; `id` and times given by the client are refused. */
export function proposeCreate(collection: Collection, validator: Validator, value: unknown): Proposed {
  if (!isMembers(value)) return notAnObject;
  const fields = orderedFields(collection, filled(validator, value));
  return judge(validator, fields, assignedMembers(value), 'field_missing') ?? proposal(fields, undefined);
}

/**
 * The fields that a PUT to the resource `id` leaves: those given, and defaults. `current` is the stored representation,
 * undefined where the PUT creates. Server-made members are ignored when they are those of `current`.
 */
export function proposeReplace(
  collection: Collection,
  validator: Validator,
  id: string,
  current: Fields | undefined,
  value: unknown,
): Proposed {
  if (!isMembers(value)) return notAnObject;
  const fields = orderedFields(collection, filled(validator, value));
  const refused = [
    ...misstatedMembers(value, current ?? { id }),
    ...(current === undefined ? [] : fixedChanges(collection, current, fields)),
  ];
  return judge(validator, fields, refused, 'field_missing') ?? proposal(fields, current);
}

/**
 * The fields that a patch of the representation `current` leaves. The patch sees the whole representation, so
 * `test /id` works; what it makes of the members of the server must be what stood.
 */
export function proposePatch(
  collection: Collection,
  validator: Validator,
  current: Fields,
  patch: PatchContent,
  limits: PatchLimits = patchLimitsDefault,
): Proposed {
  const patched = applyPatch(current as Members, patch, limits);
  if (!patched.ok) {
    // A patch with both kinds of fault is refused for the graver one (surface, "400 or 422").
    const fixed =
      patched.problem.code === 'patch_not_applicable'
        ? unpatchableTargets(collection, current, patch.value)
        : [];
    return fixed.length === 0
      ? patched
      : { ok: false, problem: { code: 'field_unpatchable', errors: fixed } };
  }
  const after = patched.value;
  if (!isMembers(after)) return notAnObject;
  const fields = orderedFields(collection, after);
  const refused = unpatchableChanges(collection, current, after);
  return judge(validator, fields, refused, 'validation_failed') ?? proposal(fields, current);
}

function applyPatch(current: Members, patch: PatchContent, limits: PatchLimits): Patched {
  if (patch.format === 'json-patch') return jsonPatch(current, patch.value, limits);
  if (isMembers(patch.value)) return { ok: true, value: mergePatch(current, patch.value) };
  // RFC 7396 would replace the whole resource by this value, which no resource can be.
  return { ok: false, problem: { code: 'patch_malformed', message: 'a merge patch must be a JSON object' } };
}

const notAnObject: Proposed = {
  ok: false,
  problem: { code: 'validation_failed', errors: [{ pointer: '', message: 'must be an object' }] },
};

function filled(validator: Validator, value: Members): Members {
  const result = validator.fillDefaults?.(value as Json) ?? value;
  return isMembers(result) ? result : value;
}

function judge(
  validator: Validator,
  fields: Fields,
  refused: readonly FieldError[],
  codeOfMissing: ProblemCode,
): Proposed | undefined {
  const { missing, invalid } = validator.check(fields);
  if (refused.length + missing.length + invalid.length === 0) return undefined;
  const code =
    refused.length > 0 ? 'field_unpatchable' : missing.length > 0 ? codeOfMissing : 'validation_failed';
  const errors = [...refused, ...missing, ...invalid].slice(0, validator.errorsMax);
  return { ok: false, problem: { code, errors } };
}

function proposal(fields: Fields, current: Fields | undefined): Proposed {
  return { ok: true, fields, unchanged: current !== undefined && isUnchanged(fields, current) };
}

function isUnchanged(fields: Fields, current: Fields): boolean {
  let count = 0;
  for (const name of Object.keys(current)) {
    if (madeMembers.includes(name)) continue;
    if (!Object.hasOwn(fields, name) || !equalJson(fields[name], current[name])) return false;
    count += 1;
  }
  return count === Object.keys(fields).length;
}

/** The members in the order of the schema, then others as they came; never those that the server makes. */
function orderedFields(collection: Collection, value: Members): Members {
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

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
import { parseJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Collection } from '../../model/collection.ts';
import type { PatchContent } from '../content/parsed.ts';
import { jsonPatch, type Patched, type PatchLimits, patchLimitsDefault } from './json-patch.ts';
import { equalJson, isMembers, type Members, setMember } from './json-value.ts';
import { mergePatch } from './merge-patch.ts';
import type { Faults } from './schema-errors.ts';
import {
  assignedMembers,
  fixedChanges,
  madeMembers,
  misstatedMembers,
  unpatchableChanges,
  unpatchableTargets,
} from './unpatchable.ts';
import type { Validator } from './validator.ts';
import {
  hiddenNamed,
  keeping,
  readOnlyChanges,
  readOnlyNamed,
  type Withheld,
  type Writer,
  withheldFrom,
  withoutHidden,
  withTenant,
} from './withheld.ts';

type Fields = Readonly<Record<string, unknown>>;

/** What is looked at of a collection. */
export type Proposable = Pick<
  Collection,
  'schema' | 'fields' | 'unpatchable' | 'tenantField' | 'readOnly' | 'hidden'
>;

export type Proposed =
  /** Fields in the order of the schema, without the members that the server makes. `unchanged`: they already stand so. */
  | { readonly ok: true; readonly fields: Fields; readonly unchanged: boolean }
  | { readonly ok: false; readonly problem: Problem };

/**
 * The fields of a new resource: defaults filled in, the tenant of the writer set; `id` and times given by the client are refused.
 * @param writer undefined: the program itself
 */
export function proposeCreate(
  collection: Proposable,
  validator: Validator,
  value: unknown,
  writer?: Writer,
): Proposed {
  if (!isMembers(value)) return notAnObject;
  return proposeNew(collection, validator, value, { refused: assignedMembers(value), writer });
}

/**
 * The fields that a PUT to the resource `id` leaves: those given, defaults, and what stands in fields that are closed to the
 * writer. `current` is the stored representation, undefined where the PUT creates. Server-made members are ignored when they are
 * those of `current`.
 */
export function proposeReplace(
  collection: Proposable,
  validator: Validator,
  id: string,
  current: Fields | undefined,
  value: unknown,
  writer?: Writer,
): Proposed {
  if (!isMembers(value)) return notAnObject;
  if (current === undefined) {
    return proposeNew(collection, validator, value, { refused: misstatedMembers(value, { id }), writer });
  }
  const withheld = withheldFrom(collection, writer, current);
  const kept = keptByReplace(collection, withheld, current, value);
  const fields = orderedFields(collection, keeping(kept, current as Members, filled(validator, value)));
  const refused = [
    ...misstatedMembers(value, current),
    ...fixedChanges(collection, filled(validator, current as Members), fields),
    ...readOnlyChanges(withheld, current, fields),
  ];
  const unknown = hiddenNamed(withheld, value);
  return (
    judge(validator, fields, { refused, unknown, withheld, codeOfMissing: 'field_missing', current }) ??
    proposal(fields, current)
  );
}

/**
 * The fields that a patch of the representation `current` leaves. The patch sees the whole representation but for what is hidden
 * from the writer, so `test /id` works; what it makes of the members of the server must be what stood. A member that it removes
 * takes its default where it has one; a field that is closed to the writer stays as it stands.
 */
export function proposePatch(
  collection: Proposable,
  validator: Validator,
  current: Fields,
  patch: PatchContent,
  limits: PatchLimits = patchLimitsDefault,
  writer?: Writer,
): Proposed {
  const withheld = withheldFrom(collection, writer, current);
  const patched = applyPatch(withoutHidden(withheld, current as Members), patch, limits);
  if (!patched.ok) {
    // A patch with both kinds of fault is refused for the graver one (surface, "400 or 422").
    const fixed =
      patched.problem.code === 'patch_not_applicable'
        ? unpatchableTargets(collection, withheld, current, patch.value)
        : [];
    return fixed.length === 0
      ? patched
      : { ok: false, problem: { code: 'field_unpatchable', errors: fixed } };
  }
  const seen = patched.value;
  if (!isMembers(seen)) return notAnObject;
  const after = keeping(withheld.hidden, current as Members, seen);
  const closed = [...withheld.readOnly, ...withheld.hidden];
  const fields = orderedFields(collection, keeping(closed, after, filled(validator, after)));
  const refused = [
    ...unpatchableChanges(collection, current, after),
    ...readOnlyChanges(withheld, current, after),
  ];
  const unknown = hiddenNamed(withheld, seen);
  return (
    judge(validator, fields, { refused, unknown, withheld, codeOfMissing: 'validation_failed', current }) ??
    proposal(fields, current)
  );
}

type NewParts = { readonly refused: readonly FieldError[]; readonly writer: Writer | undefined };

function proposeNew(
  collection: Proposable,
  validator: Validator,
  value: Members,
  { refused, writer }: NewParts,
): Proposed {
  const tenanted = withTenant(collection, writer, value);
  const fields = orderedFields(collection, filled(validator, tenanted.value));
  const withheld = withheldFrom(collection, writer, fields);
  const judged = judge(validator, fields, {
    refused: [...refused, ...tenanted.refused, ...readOnlyNamed(withheld, value)],
    unknown: hiddenNamed(withheld, value),
    withheld,
    codeOfMissing: 'field_missing',
    current: undefined,
  });
  return judged ?? proposal(fields, undefined);
}

/** The fields in which a PUT keeps what stands: closed ones that it leaves out or repeats, and the tenant. */
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

type Judging = {
  readonly refused: readonly FieldError[];
  /** Hidden fields that were named. */
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
  const { missing, invalid } = speakable(validator.check(fields), withheld, current !== undefined);
  if (refused.length + unknown.length + missing.length + invalid.length === 0) return undefined;
  const code =
    refused.length > 0 ? 'field_unpatchable' : missing.length > 0 ? codeOfMissing : 'validation_failed';
  const errors = [...refused, ...missing, ...unknown, ...invalid].slice(0, validator.errorsMax);
  return { ok: false, problem: { code, errors } };
}

/**
 * The faults without those in hidden fields, which the writer can neither see nor mend. Only what is missing in a new resource is told all
 * the same: it cannot be made without.
 */
function speakable(faults: Faults, { hidden }: Withheld, stands: boolean): Faults {
  if (hidden.size === 0) return faults;
  const isOpen = ({ pointer }: FieldError) => !hidden.has(parseJsonPointer(pointer)?.[0] ?? '');
  return {
    missing: stands ? faults.missing.filter(isOpen) : faults.missing,
    invalid: faults.invalid.filter(isOpen),
  };
}

function proposal(fields: Fields, current: Fields | undefined): Proposed {
  return { ok: true, fields, unchanged: current !== undefined && isUnchanged(fields, current) };
}

/** Whether the fields are those of the representation `current`, by JSON value. */
export function isUnchanged(fields: Fields, current: Fields): boolean {
  let count = 0;
  for (const name of Object.keys(current)) {
    if (madeMembers.includes(name)) continue;
    if (!Object.hasOwn(fields, name) || !equalJson(fields[name], current[name])) return false;
    count += 1;
  }
  return count === Object.keys(fields).length;
}

/** The members in the order of the schema, then others as they came; never those that the server makes. */
function orderedFields(collection: Proposable, value: Members): Members {
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

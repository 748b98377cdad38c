/**
 * Members that a client may not change (§4.6.3): server-assigned ones, and those that the collection fixes at creation.
 * Only a change is refused: a patch or PUT that repeats the current value is accepted, and a PUT that omits a fixed
 * field changes it.
 */
import type { FieldError } from '../../http/problem.ts';
import { formatJsonPointer, parseJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Collection } from '../../model/collection.ts';
import { equalJson } from '../../model/json-value.ts';
import { instantKey, keptInstant } from '../../model/timestamp.ts';
import { readOnlyMessage, type Withheld } from './withheld.ts';

/** The server-assigned members (§2.1). A null `deletedAt` counts as absent. */
export const madeMembers: readonly string[] = ['id', 'createdAt', 'updatedAt', 'deletedAt'];

type Resource = Readonly<Record<string, unknown>>;

const none: readonly FieldError[] = [];

/** Refuses server-assigned members in a POST body. */
export function assignedMembers(value: Resource): readonly FieldError[] {
  let errors: FieldError[] | undefined;
  for (const name of madeMembers) {
    if (!Object.hasOwn(value, name)) continue;
    errors ??= [];
    errors.push({ pointer: `/${name}`, message: 'is assigned by the server' });
  }
  return errors ?? none;
}

/** Refuses changes of server-assigned members in a PUT body; one that creates may name the id of its target. */
export function misstatedMembers(value: Resource, current: Resource): readonly FieldError[] {
  const errors: FieldError[] = [];
  for (const name of madeMembers) {
    if (!Object.hasOwn(value, name) || isSame(value[name], own(current, name))) continue;
    if (value[name] === null && own(current, name) === undefined) continue;
    errors.push({ pointer: `/${name}`, message: 'is assigned by the server' });
  }
  return errors;
}

/** A client that has parsed a time may spell it differently. No id is an instant. */
function isSame(given: unknown, standing: unknown): boolean {
  if (typeof given !== 'string' || typeof standing !== 'string') return equalJson(given, standing);
  const kept = given === standing ? undefined : keptInstant(given);
  return given === standing || (kept !== undefined && instantKey(kept) === instantKey(standing));
}

/** Lists forbidden differences between the representations before and after a patch. */
export function unpatchableChanges(
  collection: Pick<Collection, 'unpatchable'>,
  before: Resource,
  after: Resource,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  for (const name of madeMembers) {
    const value = own(before, name) ?? null;
    if (isSame(own(after, name) ?? null, value)) continue;
    errors.push({ pointer: `/${name}`, message: 'is assigned by the server' });
  }
  return [...errors, ...fixedChanges(collection, before, after)];
}

/** Lists the fields fixed at creation that differ; an added one differs too. */
export function fixedChanges(
  collection: Pick<Collection, 'unpatchable'>,
  before: Resource,
  after: Resource,
): readonly FieldError[] {
  if (collection.unpatchable.size === 0) return none;
  const errors: FieldError[] = [];
  for (const name of collection.unpatchable) {
    if (equalJson(own(before, name), own(after, name))) continue;
    errors.push({ pointer: formatJsonPointer([name]), message: 'cannot be changed after creation' });
  }
  return errors;
}

/**
 * Lists forbidden members that a JSON Patch targets, for a patch that cannot be applied and so leaves no representation
 * to compare. An operation that repeats the current value is left out.
 */
export function unpatchableTargets(
  collection: Pick<Collection, 'unpatchable'>,
  withheld: Withheld,
  before: Resource,
  operations: unknown,
): readonly FieldError[] {
  const errors = new Map<string, FieldError>();
  for (const operation of Array.isArray(operations) ? operations : []) {
    const { op, path, from, value } = operation as Readonly<Record<string, unknown>>;
    if (op === 'test') continue;
    for (const pointer of op === 'move' ? [path, from] : [path]) {
      const [name] = typeof pointer === 'string' ? (parseJsonPointer(pointer) ?? []) : [];
      const message = name === undefined ? undefined : explainRefusal(name, collection, withheld);
      if (name === undefined || message === undefined) continue;
      if ((op === 'add' || op === 'replace') && equalJson(own(before, name), value)) continue;
      errors.set(name, { pointer: formatJsonPointer([name]), message });
    }
  }
  return [...errors.values()];
}

/** Explains why the member may not change; undefined if it may. */
function explainRefusal(
  name: string,
  { unpatchable }: Pick<Collection, 'unpatchable'>,
  { readOnly }: Withheld,
): string | undefined {
  if (madeMembers.includes(name)) return 'is assigned by the server';
  if (unpatchable.has(name)) return 'cannot be changed after creation';
  return readOnly.has(name) ? readOnlyMessage : undefined;
}

function own(resource: Resource, name: string): unknown {
  return Object.hasOwn(resource, name) ? resource[name] : undefined;
}

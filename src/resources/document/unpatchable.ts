/**
 * Members that a client may not change (§4.6.3; surface, "400 or 422"): those the server makes, and those
 * that the collection fixes at creation. What counts is the change, not the naming: a patch or PUT that says what
 * already stands there is accepted, and leaving a fixed field out of a PUT changes it.
 */
import type { FieldError } from '../../http/problem.ts';
import { formatJsonPointer, parseJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Collection } from '../../model/collection.ts';
import { equalJson } from './json-value.ts';
import { readOnlyMessage, type Withheld } from './withheld.ts';

/** §2.1. `deletedAt` that is null counts as absent. */
export const madeMembers: readonly string[] = ['id', 'createdAt', 'updatedAt', 'deletedAt'];

type Resource = Readonly<Record<string, unknown>>;

const none: readonly FieldError[] = [];

/** Made members that a POST body names: the server assigns them. */
export function assignedMembers(value: Resource): readonly FieldError[] {
  let errors: FieldError[] | undefined;
  for (const name of madeMembers) {
    if (!Object.hasOwn(value, name)) continue;
    errors ??= [];
    errors.push({ pointer: `/${name}`, message: 'is assigned by the server' });
  }
  return errors ?? none;
}

/**
 * Made members of a PUT body that are not what stands. Left out they stand as they are; where nothing stands
 * (a PUT that creates), only the id of the target may be named.
 */
export function misstatedMembers(value: Resource, standing: Resource): readonly FieldError[] {
  const errors: FieldError[] = [];
  for (const name of madeMembers) {
    if (!Object.hasOwn(value, name) || equalJson(value[name], own(standing, name))) continue;
    if (value[name] === null && own(standing, name) === undefined) continue;
    errors.push({ pointer: `/${name}`, message: 'is assigned by the server' });
  }
  return errors;
}

/**
 * What may not change and differs between the representations before and after a patch.
 */
export function unpatchableChanges(
  collection: Pick<Collection, 'unpatchable'>,
  before: Resource,
  after: Resource,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  for (const name of madeMembers) {
    const stood = own(before, name) ?? null;
    if (equalJson(stood, own(after, name) ?? null)) continue;
    errors.push({ pointer: `/${name}`, message: 'is assigned by the server' });
  }
  return [...errors, ...fixedChanges(collection, before, after)];
}

/** The fields fixed at creation that differ; absent before and given now differs too. */
export function fixedChanges(
  collection: Pick<Collection, 'unpatchable'>,
  before: Resource,
  after: Resource,
): readonly FieldError[] {
  if (collection.unpatchable.size === 0) return none;
  const errors: FieldError[] = [];
  for (const name of collection.unpatchable) {
    if (equalJson(own(before, name), own(after, name))) continue;
    errors.push({ pointer: formatJsonPointer([name]), message: 'is fixed at creation' });
  }
  return errors;
}

/**
 * Members that may not change and that a JSON Patch names as its target: for a patch that cannot be applied, which leaves
 * no representation to compare. What only says what stands already is left out, as above.
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
      const message = name === undefined ? undefined : refusalOf(name, collection, withheld);
      if (name === undefined || message === undefined) continue;
      if ((op === 'add' || op === 'replace') && equalJson(own(before, name), value)) continue;
      errors.set(name, { pointer: formatJsonPointer([name]), message });
    }
  }
  return [...errors.values()];
}

/** Why the member may not change; undefined where it may. */
function refusalOf(
  name: string,
  { unpatchable }: Pick<Collection, 'unpatchable'>,
  { readOnly }: Withheld,
): string | undefined {
  if (madeMembers.includes(name)) return 'is assigned by the server';
  if (unpatchable.has(name)) return 'is fixed at creation';
  return readOnly.has(name) ? readOnlyMessage : undefined;
}

function own(resource: Resource, name: string): unknown {
  return Object.hasOwn(resource, name) ? resource[name] : undefined;
}

/**
 * Members that the writer of a resource may not change. Fields are closed to it by rules (§5.1): `readOnly` ones it may see
 * but not change; `hidden` ones do not exist for it. A closed field keeps its value: a PUT that omits it keeps it, and a
 * patch cannot reach it. Others are closed to every writer (§4.6.3).
 */
import type { FieldError } from '../../http/problem.ts';
import { formatJsonPointer, parseJsonPointer } from '../../http/syntax/json-pointer.ts';
import { type Action, permittedWhere, type Rule } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { type Field, ownerField } from '../../model/field.ts';
import { type Filter, never } from '../../model/filter.ts';
import { equalJson, type Members, ownMember, setMember } from '../../model/json-value.ts';
import { matches, memberAt } from '../../model/matches.ts';
import { isAdministrator, type Principal, tenantOf } from '../../model/principal.ts';
import { instantKey, keptInstant } from '../../model/timestamp.ts';

/** The principal that writes, and the owner of the resource; the writer owns a resource that it creates. */
export type Writer = {
  readonly principal: Principal;
  readonly owner: string | null;
  /** The rules compiled by `closingsFor`, for a content thread, to which a function cannot cross. */
  readonly closings?: Closings;
};

/** Closed fields, each with a filter for the resources in which it is open. */
type Closings = {
  readonly readOnly: readonly Closing[];
  readonly hidden: readonly Closing[];
};

type Closing = { readonly name: string; readonly openWhere: Filter };
type Closable = Pick<Collection, 'readOnly' | 'hidden' | 'fields' | 'computed' | 'stamp'>;

export type Withheld = { readonly readOnly: ReadonlySet<string>; readonly hidden: ReadonlySet<string> };

type Resource = Readonly<Record<string, unknown>>;

const nothing: Withheld = { readOnly: new Set(), hidden: new Set() };

/** Lists the fields that are closed to the writer in this resource. @param writer undefined: the program itself */
export function withheldFrom(collection: Closable, writer: Writer | undefined, resource: Resource): Withheld {
  if (writer === undefined) return nothing;
  const { readOnly, hidden } = writer.closings ?? closingsFor(collection, writer.principal);
  if (readOnly.length + hidden.length === 0) return nothing;
  const value = ({ column, path }: Field) => (column === 'owner' ? writer.owner : memberAt(resource, path));
  const closed = (closings: readonly Closing[]) =>
    new Set(
      closings
        .filter(({ openWhere }) => !matches(openWhere, { value, search: null }))
        .map(({ name }) => name),
    );
  return { readOnly: closed(readOnly), hidden: closed(hidden) };
}

/** Compiles the rules for the principal, for any resource. */
export function closingsFor(collection: Closable, principal: Principal): Closings {
  const { computed, stamp } = collection;
  const rules = collection.readOnly.size + collection.hidden.size;
  if (rules === 0 && computed === undefined && stamp === undefined) return noClosings;
  const closings = (rules: ReadonlyMap<string, Rule>, action: Action) =>
    [...rules]
      .map(([name, rule]) => ({ name, openWhere: permittedWhere(rule, action, ruleContext) }))
      .filter(({ openWhere }) => openWhere.op !== 'always');
  const ruleContext = {
    principal,
    owner: ownerField,
    member: (name: string) => requireField(collection, name),
  };
  return {
    readOnly: [
      ...closings(collection.readOnly, 'update'),
      ...serverClosings([...(computed?.keys() ?? []), ...(stamp?.keys() ?? [])]),
    ],
    hidden: closings(collection.hidden, 'read'),
  };
}

/** No request writes them. */
function serverClosings(names: readonly string[]): readonly Closing[] {
  return names.map((name) => ({ name, openWhere: never }));
}

const noClosings: Closings = { readOnly: [], hidden: [] };

function requireField({ fields }: Closable, name: string): Field {
  const field = fields.get(name);
  if (field === undefined) throw new Error(`a rule names an unknown field ${name}`);
  return field;
}

export function readOnlyNamed({ readOnly }: Withheld, value: Resource): readonly FieldError[] {
  return listErrors(readOnly, readOnlyMessage, (name) => Object.hasOwn(value, name));
}

export function readOnlyChanges(
  { readOnly }: Withheld,
  before: Resource,
  after: Resource,
): readonly FieldError[] {
  return listErrors(readOnly, readOnlyMessage, (name) => !equalJson(own(before, name), own(after, name)));
}

/** Reports hidden fields that the client named, like undeclared properties. */
export function hiddenNamed({ hidden }: Withheld, value: Resource): readonly FieldError[] {
  return listErrors(hidden, 'unknown property', (name) => Object.hasOwn(value, name));
}

export const readOnlyMessage = 'is read-only';

export function withoutHidden({ hidden }: Withheld, resource: Members): Members {
  if (hidden.size === 0) return resource;
  const seen: Members = {};
  for (const name of Object.keys(resource)) {
    if (!hidden.has(name)) setMember(seen, name, resource[name] ?? null);
  }
  return seen;
}

/** Copies the value with the named fields as they are in `current`, present or absent. */
export function keeping(names: Iterable<string>, current: Members, value: Members): Members {
  let kept: Members | undefined;
  for (const name of names) {
    kept ??= { ...value };
    const member = ownMember(current, name);
    if (member === undefined) delete kept[name];
    else setMember(kept, name, member);
  }
  return kept ?? value;
}

/** Sets the writer's tenant on a new resource; only an administrator may name another. */
export function withTenant(
  { tenantField }: Pick<Collection, 'tenantField'>,
  writer: Writer | undefined,
  value: Members,
): { readonly value: Members; readonly refused: readonly FieldError[] } {
  if (tenantField === undefined || writer === undefined) return { value, refused: [] };
  const { principal } = writer;
  const tenant = tenantOf(principal);
  const named = ownMember(value, tenantField);
  if (named !== undefined && isAdministrator(principal)) return { value, refused: [] };
  const current: Members = tenant === null ? {} : { [tenantField]: tenant };
  const refused =
    named === undefined || named === tenant
      ? []
      : [{ pointer: formatJsonPointer([tenantField]), message: 'must be your own tenant' }];
  return { value: keeping([tenantField], current, value), refused };
}

function listErrors(
  names: ReadonlySet<string>,
  message: string,
  isAtFault: (name: string) => boolean,
): readonly FieldError[] {
  if (names.size === 0) return [];
  return [...names].filter(isAtFault).map((name) => ({ pointer: formatJsonPointer([name]), message }));
}

function own(resource: Resource, name: string): unknown {
  return Object.hasOwn(resource, name) ? resource[name] : undefined;
}

// Members that a client may not change (§4.6.3): server-assigned ones, and those that the collection fixes at creation. Only a change is
// refused: a patch or PUT that repeats the current value is accepted, and a PUT that omits a fixed field changes it.

/** The server-assigned members (§2.1). A null `deletedAt` counts as absent. */
export const madeMembers: readonly string[] = ['id', 'createdAt', 'updatedAt', 'deletedAt'];

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

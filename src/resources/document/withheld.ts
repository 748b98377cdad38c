/**
 * What single fields are closed to who writes a resource (§5.1): `readOnly` ones it may see and not change, `hidden` ones are not there
 * for it. A closed field stays what it is: a PUT that leaves it out keeps it, and a patch cannot reach it.
 */
import type { FieldError } from '../../http/problem.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import { type Action, permittedWhere, type Rule } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { type Field, ownerField } from '../../model/field.ts';
import type { Filter } from '../../model/filter.ts';
import { matches, memberAt } from '../../model/matches.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import { equalJson, type Members, ownMember, setMember } from './json-value.ts';

/** Who writes, and whose resource it is: the writer's own where it is made. */
export type Writer = {
  readonly principal: Principal;
  readonly owner: string | null;
  /** Made of the rules by `closingsFor` where a thread does the work, to which a rule cannot cross: it may be a function. */
  readonly closings?: Closings;
};

/** Fields that are closed to a writer but in the resources that pass the filter. */
export type Closings = {
  readonly readOnly: readonly Closing[];
  readonly hidden: readonly Closing[];
};

type Closing = { readonly name: string; readonly openWhere: Filter };
type Closable = Pick<Collection, 'readOnly' | 'hidden' | 'fields'>;

export type Withheld = { readonly readOnly: ReadonlySet<string>; readonly hidden: ReadonlySet<string> };

type Resource = Readonly<Record<string, unknown>>;

const nothing: Withheld = { readOnly: new Set(), hidden: new Set() };

/**
 * @param writer undefined: the program itself, to which nothing is closed
 * @param resource what stands, or what is to be made
 */
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

/** What is closed to the principal, whatever resource it writes. */
export function closingsFor(collection: Closable, principal: Principal): Closings {
  if (collection.readOnly.size + collection.hidden.size === 0) return noClosings;
  const closings = (rules: ReadonlyMap<string, Rule>, action: Action) =>
    [...rules]
      .map(([name, rule]) => ({ name, openWhere: permittedWhere(rule, action, asked) }))
      .filter(({ openWhere }) => openWhere.op !== 'always');
  const asked = { principal, owner: ownerField, member: (name: string) => fieldOf(collection, name) };
  return { readOnly: closings(collection.readOnly, 'update'), hidden: closings(collection.hidden, 'read') };
}

const noClosings: Closings = { readOnly: [], hidden: [] };

function fieldOf({ fields }: Closable, name: string): Field {
  const field = fields.get(name);
  if (field === undefined) throw new Error(`a rule names an unknown field ${name}`);
  return field;
}

/** The fields of a new resource that the client named and may not set. */
export function readOnlyNamed({ readOnly }: Withheld, value: Resource): readonly FieldError[] {
  return errorsOf(readOnly, readOnlyMessage, (name) => Object.hasOwn(value, name));
}

/** The read-only fields that differ. */
export function readOnlyChanges(
  { readOnly }: Withheld,
  before: Resource,
  after: Resource,
): readonly FieldError[] {
  return errorsOf(readOnly, readOnlyMessage, (name) => !equalJson(own(before, name), own(after, name)));
}

/** The hidden fields that the client named: told as any other property that nobody declared. */
export function hiddenNamed({ hidden }: Withheld, value: Resource): readonly FieldError[] {
  return errorsOf(hidden, 'unknown property', (name) => Object.hasOwn(value, name));
}

export const readOnlyMessage = 'is read-only';

/** The representation as the writer sees it. */
export function withoutHidden({ hidden }: Withheld, resource: Members): Members {
  if (hidden.size === 0) return resource;
  const seen: Members = {};
  for (const name of Object.keys(resource)) {
    if (!hidden.has(name)) setMember(seen, name, resource[name] ?? null);
  }
  return seen;
}

/** The value with what stands in the fields of these names, there or absent. */
export function keeping(names: Iterable<string>, standing: Members, value: Members): Members {
  let kept: Members | undefined;
  for (const name of names) {
    kept ??= { ...value };
    const stands = ownMember(standing, name);
    if (stands === undefined) delete kept[name];
    else setMember(kept, name, stands);
  }
  return kept ?? value;
}

/**
 * A new resource with its tenant: that of who makes it. An administrator may name another.
 * @returns what is refused as well: another tenant named by anyone else
 */
export function withTenant(
  { tenantField }: Pick<Collection, 'tenantField'>,
  writer: Writer | undefined,
  value: Members,
): { readonly value: Members; readonly refused: readonly FieldError[] } {
  if (tenantField === undefined || writer === undefined) return { value, refused: [] };
  const { principal } = writer;
  const tenant = principal.kind === 'authenticated' ? principal.tenant : null;
  const named = ownMember(value, tenantField);
  if (named !== undefined && isAdministrator(principal)) return { value, refused: [] };
  const standing: Members = tenant === null ? {} : { [tenantField]: tenant };
  const refused =
    named === undefined || named === tenant
      ? []
      : [{ pointer: formatJsonPointer([tenantField]), message: 'is the tenant of who creates it' }];
  return { value: keeping([tenantField], standing, value), refused };
}

function errorsOf(
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

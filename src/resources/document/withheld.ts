/**
 * What single fields are closed to who writes a resource (§5.1): `readOnly` ones it may see and not change, `hidden` ones are not there
 * for it. A closed field stays what it is: a PUT that leaves it out keeps it, and a patch cannot reach it.
 */
import type { FieldError } from '../../http/problem.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import { type Action, permits, type Rule, type Subject } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import { equalJson, type Members, ownMember, setMember } from './json-value.ts';

/** Who writes, and whose resource it is: the writer's own where it is made. */
export type Writer = { readonly principal: Principal; readonly owner: string | null };

export type Withheld = { readonly readOnly: ReadonlySet<string>; readonly hidden: ReadonlySet<string> };

type Resource = Readonly<Record<string, unknown>>;

const nothing: Withheld = { readOnly: new Set(), hidden: new Set() };

/**
 * @param writer undefined: the program itself, to which nothing is closed
 * @param resource what stands, or what is to be made
 */
export function withheldFrom(
  collection: Pick<Collection, 'readOnly' | 'hidden'>,
  writer: Writer | undefined,
  resource: Resource,
): Withheld {
  if (writer === undefined || collection.readOnly.size + collection.hidden.size === 0) return nothing;
  const { principal, owner } = writer;
  const member = (name: string) => (Object.hasOwn(resource, name) ? resource[name] : undefined);
  const closed = (rules: ReadonlyMap<string, Rule>, action: Action, subject: Subject) =>
    new Set(
      [...rules].filter(([, rule]) => !permits(rule, action, principal, subject)).map(([name]) => name),
    );
  return {
    readOnly: closed(collection.readOnly, 'update', { owner, member }),
    hidden: closed(collection.hidden, 'read', { owner, member }),
  };
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

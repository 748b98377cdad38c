/**
 * What stands at a member's path, and whether the principal may see and do (§4.7.1, §5.1).
 * A softly deleted resource does not exist (§4.7.4), but its row is what the next change is computed from.
 */
import type { TObject } from 'typebox';
import type { Problem } from '../../http/problem.ts';
import { valueAt } from '../../http/syntax/json-members.ts';
import type { Action as DeclaredAction } from '../../kernel/action.ts';
import { pathParameter } from '../../kernel/documentation.ts';
import type { Ask, Standing, Validators } from '../../kernel/resource.ts';
import { type Action, permission, permits, type Subject } from '../../model/access.ts';
import type { Principal } from '../../model/principal.ts';
import type { MaybePromise, Row } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import type { Served } from './served.ts';
import { type Seen, seenBy } from './view.ts';

export type MemberStanding = Standing & {
  readonly id: string;
  readonly row: Row | undefined;
  /** The representation as the principal sees it; undefined where that is what is stored. */
  readonly seen: Seen | undefined;
};

export function memberStanding(served: Served, ask: Ask, action: Action): MaybePromise<MemberStanding> {
  const id = ask.captures[0] ?? '';
  return whenKnown(served.store.read(served.collection.name, id), (row) =>
    judge(served, ask.principal, action, id, row),
  );
}

function judge(
  served: Served,
  principal: Principal,
  action: Action,
  id: string,
  row: Row | undefined,
): MemberStanding {
  const { access, conceal } = served.collection;
  if (row === undefined || row.deletedAt !== null) {
    const permitted = permission(access.create, 'create', principal) !== 'denied';
    return { exists: false, visible: true, permitted, id, row, seen: undefined };
  }
  const subject = subjectOf(row);
  const visible = permits(access.read, 'read', principal, subject);
  return {
    exists: true,
    visible: visible || !conceal,
    permitted: visible && (action === 'read' || permits(access[action], action, principal, subject)),
    id,
    row,
    seen: visible ? seenOf(served, principal, row) : undefined,
  };
}

/** What the principal sees of a row; undefined where that is what is stored. */
export function seenOf(
  served: Served,
  principal: Principal,
  row: { readonly doc: string; readonly owner: string | null },
): Seen | undefined {
  const view = served.view(principal);
  if (view.mark === '') return undefined;
  const seen = seenBy(view, row.doc, row.owner);
  return seen.mark === '' ? undefined : seen;
}

/** What a caller is told to whom a rule closes what it proposed (§5.1). */
export function closedTo(principal: Principal): { readonly refused: Problem } {
  return { refused: { code: principal.kind === 'anonymous' ? 'no_token_provided' : 'forbidden' } };
}

/** Whether the principal may make this: a rule may look at what is proposed. */
export function mayCreate(
  served: Served,
  principal: Principal,
  row: { readonly doc: string; readonly owner: string | null },
): boolean {
  return permits(served.collection.access.create, 'create', principal, subjectOf(row));
}

/** Whether the principal may both see and delete this row; false for one that is deleted already. */
export function mayDelete(served: Served, principal: Principal, row: Row): boolean {
  const { access } = served.collection;
  const subject = subjectOf(row);
  return (
    row.deletedAt === null &&
    permits(access.read, 'read', principal, subject) &&
    permits(access.delete, 'delete', principal, subject)
  );
}

/** Looks for a member in the text of the document only when a rule asks for it, and parses no other. */
export function subjectOf(row: Pick<Row, 'doc' | 'owner'>): Subject {
  return { owner: row.owner, member: (name) => valueAt(row.doc, [name]) };
}

/** Who sees less of a resource gets another entity tag: the tag is strong (RFC 9110 §8.8.1). */
export function memberValidators(standing: MemberStanding): Validators {
  const { row, seen } = standing;
  if (row === undefined) return { tag: null, modifiedAt: null };
  const tag = seen === undefined ? String(row.rev) : `${row.rev}.${seen.mark}`;
  return { tag, modifiedAt: row.updatedAt };
}

/** Where an action on a member of a collection is: its path, and who may do it to which member. */
export type MemberPlace = Required<
  Pick<
    DeclaredAction<TObject, MemberStanding>,
    'path' | 'parameters' | 'tag' | 'permission' | 'standing' | 'member'
  >
>;

/**
 * Spread into the declaration of an action on a member of a collection.
 * @param rest of the path behind the id
 * @param access the rule of the collection that decides
 * @param described whose id it is: `Of the endpoint.`
 */
export function onMember(served: Served, rest: string, access: Action, described: string): MemberPlace {
  const { collection } = served;
  return {
    path: `${served.path}/{id}/${rest}`,
    parameters: [pathParameter('id', described)],
    tag: collection,
    permission: (principal) => permission(collection.access[access], access, principal),
    standing: (ask) => memberStanding(served, ask, access),
    member: { collection, action: access },
  };
}

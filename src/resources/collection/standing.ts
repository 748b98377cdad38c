/**
 * What stands at a member's path, and whether the principal may see and do (§4.7.1, §5.1).
 * A softly deleted resource does not exist (§4.7.4), but its row is what the next change is computed from.
 */
import { type Action, permission, permits, type Subject } from '../../model/access.ts';
import type { Principal } from '../../model/principal.ts';
import type { MaybePromise, Row } from '../../store/store.ts';
import type { Ask, Standing, Validators } from '../resource.ts';
import type { Served } from './served.ts';

export type MemberStanding = Standing & { readonly id: string; readonly row: Row | undefined };

export function memberStanding(served: Served, ask: Ask, action: Action): MaybePromise<MemberStanding> {
  const id = ask.captures[0] ?? '';
  const row = served.store.read(served.collection.name, id);
  return row instanceof Promise
    ? row.then((found) => judge(served, ask.principal, action, id, found))
    : judge(served, ask.principal, action, id, row);
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
    return { exists: false, visible: true, permitted, id, row };
  }
  const subject = subjectOf(row);
  const visible = permits(access.read, 'read', principal, subject);
  return {
    exists: true,
    visible: visible || !conceal,
    permitted: visible && (action === 'read' || permits(access[action], action, principal, subject)),
    id,
    row,
  };
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

/** Parses the stored document only when a rule asks for a member of it. */
export function subjectOf(row: Row): Subject {
  let parsed: Record<string, unknown> | undefined;
  return {
    owner: row.owner,
    member: (name) => {
      parsed ??= JSON.parse(row.doc) as Record<string, unknown>;
      return parsed[name];
    },
  };
}

export function memberValidators(standing: MemberStanding): Validators {
  const { row } = standing;
  if (row === undefined) return { tag: null, modifiedAt: null };
  return { tag: String(row.rev), modifiedAt: row.updatedAt };
}

/**
 * DELETE (§4.7): gone, or hidden with `deletedAt` set where the collection deletes softly. Dependants block both.
 */
import { permission } from '../../model/access.ts';
import type { NextRow, Row } from '../../store/store.ts';
import type { Operation } from '../resource.ts';
import { commitUnit } from './commit.ts';
import { madeOf } from './made-of.ts';
import { eventOf, timeAfter } from './row.ts';
import type { Served } from './served.ts';
import { type MemberStanding, memberStanding, memberValidators } from './standing.ts';

export function removeOperation(served: Served): Operation<MemberStanding> {
  const { collection } = served;
  return {
    permission: (principal) => permission(collection.access.delete, 'delete', principal),
    asynchronous: true,
    matchRequired: collection.requireMatch,
    changes: ({ captures }) => ({ table: collection.name, id: captures[0] ?? '' }),
    standing: (ask) => memberStanding(served, ask, 'delete'),
    validators: (_ask, standing) => memberValidators(standing),
    act: (ask, standing) => {
      const { id, row } = standing;
      if (row === undefined) throw new Error('a deletion of nothing');
      const removed = removal(served, row);
      const gone = { created: false, location: null, modifiedAt: null, validated: false };
      const made = madeOf(served, ask.principal, { doc: removed.doc, owner: row.owner }, gone);
      const changes = [{ table: collection.name, id, expect: { rev: row.rev }, next: removed.next }];
      const events = [eventOf(served, 'deleted', { doc: removed.doc, owner: row.owner }, removed.at)];
      return commitUnit(served, ask, { changes, events }, made, [row]);
    },
  };
}

/** What a row becomes when it is deleted, and the representation that tells of it. */
export function removal(
  served: Served,
  row: Row,
): { readonly next: NextRow | null; readonly doc: string; readonly at: number } {
  const at = timeAfter(served.clock, row.updatedAt);
  if (!served.collection.softDelete) return { next: null, doc: row.doc, at };
  const doc = JSON.stringify({
    ...(JSON.parse(row.doc) as Record<string, unknown>),
    updatedAt: new Date(at).toISOString(),
    deletedAt: new Date(at).toISOString(),
  });
  const next = {
    doc,
    owner: row.owner,
    createdAt: row.createdAt,
    updatedAt: at,
    deletedAt: at,
    search: null,
    references: [],
  };
  return { next, doc, at };
}

/**
 * Takes out of the deliveries of one event what its receivers answered, and ends those that are not delivered (§6). Each delivery is one
 * unit, expected as it was read, so that it and an attempt under way cannot undo each other.
 */
import { type Delivery, deliveryDocument } from '../../../model/delivery.ts';
import type { Field } from '../../../model/field.ts';
import { byId } from '../../../model/filter.ts';
import { keptRow } from '../../../store/kept-row.ts';
import { tryCommit } from '../../../store/lines.ts';
import {
  type Change,
  type Keyset,
  type ListQuery,
  Overtaken,
  type Row,
  type Store,
} from '../../../store/store.ts';
import { type Attempt, attemptId } from '../../../webhooks/outbound/attempt-row.ts';
import { deliveriesCollection } from '../../../webhooks/outbound/collections.ts';
import { expungedError } from '../../../webhooks/outbound/conclude.ts';
import { attemptsTable } from '../../../webhooks/outbound/tables.ts';
import { timeAfter } from '../../collection/row.ts';

/** What has been taken out so far. */
export type Expunged = { deliveries: number; attempts: number };

type Sources = { readonly store: Store; readonly clock: () => number };

/** Deliveries of one event read and changed at once, and attempts in one unit. */
const rowsMax = 100;

export async function expungeDeliveries(sources: Sources, eventId: string, counted: Expunged): Promise<void> {
  const field = deliveriesCollection.fields.get('eventId');
  if (field === undefined) throw new Error('deliveries have no events');
  const table = deliveriesCollection.name;
  const query: ListQuery = {
    table,
    filter: { op: 'eq', field, value: eventId },
    sort: byId,
    limit: rowsMax,
  };
  for await (const rows of pagesOf(sources.store, query))
    await Promise.all(rows.map((row) => expungeDelivery(sources, row, counted)));
}

async function expungeDelivery({ store, clock }: Sources, { id }: Row, counted: Expunged): Promise<void> {
  const name = { table: deliveriesCollection.name, id };
  let isDone = false;
  while (!isDone) {
    isDone = await store.lines.change(name, async () => {
      const row = await store.read(name.table, id);
      if (row === undefined) return true;
      const emptied = await emptiedAttempts(store, id);
      const changed = deliveryChange({ store, clock }, row, emptied.length > 0);
      if (changed === undefined) return true;
      const changes = [changed, ...emptied.slice(0, rowsMax)];
      const commit = await tryCommit(store, { changes, events: [] });
      if (commit instanceof Overtaken) return commit;
      const isWhole = emptied.length <= rowsMax;
      counted.deliveries += isWhole ? 1 : 0;
      counted.attempts += changes.length - 1;
      return isWhole;
    });
  }
}

/** @returns undefined where nothing is left to be taken out */
function deliveryChange({ clock }: Sources, row: Row, emptiesAttempts: boolean): Change | undefined {
  const stood = JSON.parse(row.doc) as Delivery;
  const isOver = stood.status === 'delivered' || stood.lastError === expungedError;
  if (isOver && !emptiesAttempts) return undefined;
  const at = timeAfter(clock, row.updatedAt);
  const ended = { status: 'not_delivered', nextAttemptAt: null, dueAt: null, lastStatusCode: null } as const;
  const next: Delivery = {
    ...stood,
    // What was delivered was delivered: that is no secret of the subject's.
    ...(stood.status === 'delivered' ? {} : { ...ended, lastError: expungedError }),
    updatedAt: new Date(at).toISOString(),
  };
  return {
    table: deliveriesCollection.name,
    id: row.id,
    expect: { rev: row.rev },
    next: keptRow(deliveryDocument(next), row.owner, row.createdAt, at),
  };
}

const idOfRow: Field = { name: 'id', path: ['id'], type: 'string', column: 'id' };

async function emptiedAttempts(store: Store, deliveryId: string): Promise<readonly Change[]> {
  const query: ListQuery = {
    table: attemptsTable,
    filter: {
      op: 'and',
      filters: [
        { op: 'gt', field: idOfRow, value: attemptId(deliveryId, 0) },
        // 0 is what follows the slash in the order of ids.
        { op: 'lt', field: idOfRow, value: `${deliveryId}0` },
      ],
    },
    sort: byId,
    limit: rowsMax,
  };
  const changes: Change[] = [];
  for await (const rows of pagesOf(store, query)) {
    for (const row of rows) {
      const change = emptied(row);
      if (change !== undefined) changes.push(change);
    }
    if (changes.length > rowsMax) break;
  }
  return changes;
}

/** What the receiver said is gone, that it answered stays. */
function emptied(row: Row): Change | undefined {
  const attempt = JSON.parse(row.doc) as Attempt;
  if (attempt.responseSnippet === '' && attempt.responseHeaders.length === 0) return undefined;
  const doc = JSON.stringify({ ...attempt, responseSnippet: '', responseHeaders: [] });
  const next = keptRow(doc, row.owner, row.createdAt, row.updatedAt);
  return { table: attemptsTable, id: row.id, expect: { rev: row.rev }, next };
}

async function* pagesOf(store: Store, query: ListQuery): AsyncGenerator<readonly Row[]> {
  const plan = store.plan(query);
  let position: Keyset = { from: 'start' };
  for (;;) {
    const rows = await plan.rows(position);
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < query.limit) return;
    position = { from: 'after', key: [last.id] };
  }
}

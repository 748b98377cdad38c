/** Senders and messages of them as accepting would have put them, and what a test reads of them afterwards. */
import type { DeclaredSender } from '../../../src/config/senders.ts';
import type { HandedOn } from '../../../src/logic/threads/handler-protocol.ts';
import { byId } from '../../../src/model/filter.ts';
import { type Received, receivedDocument } from '../../../src/model/received.ts';
import { type Change, type Commit, keptRow, type Store } from '../../../src/store/store.ts';
import type { ClaimedContent } from '../../../src/webhooks/receiving/hand-on.ts';
import {
  contentId,
  type ReceivedAttempt,
  receivedAttemptsTable,
  receivedCollection,
  receivedContentsTable,
} from '../../../src/webhooks/receiving/received-tables.ts';

export const table = receivedCollection.name;

export function sender(name: string, parts: Partial<DeclaredSender> = {}): DeclaredSender {
  return {
    ...{ name, description: '', preset: null, publicKeys: [], keysUrl: undefined },
    rule: { signature: { kind: 'token', header: 'x-token' }, dedupe: [], type: [], keep: [] },
    secretVariable: 'SECRET',
    ...{ handOn: { kind: 'handler' }, schedule: [5, 30], inFlightMax: undefined },
    ...parts,
  };
}

export function message(id: string, at: number, parts: Partial<Received> = {}): Received {
  const time = new Date(at).toISOString();
  return {
    ...{ id, sender: 'billing', dedupeKey: `key-${id}`, type: 'order.paid', receivedAt: time },
    ...{ status: 'pending', attempts: 0, scheduledAttempts: 0, dueAt: time, lastError: null },
    ...{ contentType: 'application/json', contentLength: 2, createdAt: time, updatedAt: time },
    ...parts,
  };
}

export function content(id: string, parts: Partial<ClaimedContent> = {}): ClaimedContent {
  return { id, contentType: 'application/json', contentEncoding: null, headers: {}, body: 'e30=', ...parts };
}

/** What puts a message: its content and itself. */
export function arrival(received: Received): readonly Change[] {
  const { id, dedupeKey, sender: name, receivedAt } = received;
  const at = Date.parse(receivedAt);
  const body = keptRow(JSON.stringify(content(id)), null, at, at);
  return [
    {
      table: receivedContentsTable,
      id: contentId(name, dedupeKey),
      expect: { absent: true },
      next: body,
    },
    { table, id, expect: { absent: true }, next: keptRow(receivedDocument(received), null, at, at) },
  ];
}

export async function put(store: Store, ...messages: readonly Received[]): Promise<void> {
  expectCommitted(await store.commit({ changes: messages.flatMap(arrival), events: [] }));
}

/** Writes a message anew, as a replay or a mark does. */
export async function rewrite(store: Store, id: string, parts: Partial<Received>): Promise<void> {
  const row = await store.read(table, id);
  if (row === undefined) throw new Error(`${id} is not there`);
  const next = { ...(JSON.parse(row.doc) as Received), ...parts };
  const change: Change = {
    ...{ table, id, expect: { rev: row.rev } },
    next: keptRow(receivedDocument(next), null, row.createdAt, Date.parse(next.updatedAt)),
  };
  expectCommitted(await store.commit({ changes: [change], events: [] }));
}

export async function standing(store: Store, id: string): Promise<Received | undefined> {
  const row = await store.read(table, id);
  return row === undefined ? undefined : (JSON.parse(row.doc) as Received);
}

export async function attemptsOf(store: Store, id: string): Promise<readonly ReceivedAttempt[]> {
  const attempts: ReceivedAttempt[] = [];
  for (let number = 1; ; number += 1) {
    const row = await store.read(receivedAttemptsTable, `${id}/${String(number).padStart(6, '0')}`);
    if (row === undefined) return attempts;
    attempts.push(JSON.parse(row.doc) as ReceivedAttempt);
  }
}

/** Takes every message out, with what belongs to it. */
export async function clear(store: Store): Promise<void> {
  for (const name of [table, receivedContentsTable, receivedAttemptsTable]) {
    const plan = store.plan({
      table: name,
      filter: { op: 'and', filters: [] },
      sort: byId,
      limit: 1000,
    });
    for (;;) {
      const rows = await plan.rows({ from: 'start' });
      if (rows.length === 0) break;
      const changes = rows.map(({ id, rev }) => ({ table: name, id, expect: { rev }, next: null }));
      expectCommitted(await store.commit({ changes, events: [] }));
    }
  }
}

export const done: HandedOn = {
  outcome: 'processed',
  unit: { changes: [], events: [] },
  statusCode: null,
};

export function failed(
  error: string,
  parts: { permanent?: boolean; notBefore?: number } = {},
): Extract<HandedOn, { outcome: 'failed' }> {
  const { permanent = false, notBefore = null } = parts;
  return { outcome: 'failed', error, message: `it ${error}`, statusCode: null, permanent, notBefore };
}

function expectCommitted(commit: Commit): void {
  if (commit.outcome !== 'committed') throw new Error(`a unit of the test is ${commit.outcome}`);
}

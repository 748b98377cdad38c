/** A log with deliveries for the tests of recoveries, and what carries these out. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';
import { type Delivery, deliveryDocument } from '../../../src/model/delivery.ts';
import { eventDocument } from '../../../src/model/event.ts';
import { always, byId } from '../../../src/model/filter.ts';
import { createIdSource } from '../../../src/model/id.ts';
import { type Change, type EventEntry, keptRow, type Store } from '../../../src/store/store.ts';
import { createWants } from '../../../src/webhooks/sending/fan-out/matcher.ts';
import {
  beginRecovery,
  createRecoveries,
  type NewRecovery,
  type Recovery,
  recoveriesTable,
} from '../../../src/webhooks/sending/recovery/recovery.ts';
import { endpointSecretsTable } from '../../../src/webhooks/sending/sending-tables.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { openDirectory } from '../endpoints/directory.ts';

export const owner = 'usr_ada';
/** When the tests take place. */
export const now = Date.UTC(2026, 5, 15, 12);

let made = 0;
const newId = createIdSource(
  () => now,
  () => randomInt(32),
);

export type EventParts = {
  readonly at: number;
  readonly type?: string;
  readonly owner?: string;
  readonly id?: string;
};

export function eventOf({ at, type = 'orders.paid', owner: of = owner, id }: EventParts): EventEntry {
  made += 1;
  const named = id ?? `evt_${newId()}`;
  const doc = eventDocument(named, type, at, `{"id":"o${made}"}`);
  return { id: named, type, collection: '', owner: of, doc, createdAt: at };
}

export function deliveryOf(event: EventEntry, endpointId: string, parts: Partial<Delivery>): Change {
  const id = `dlv_${newId()}`;
  const time = new Date(event.createdAt).toISOString();
  const delivery: Delivery = {
    id,
    eventId: event.id,
    eventType: event.type,
    endpointId,
    status: 'not_delivered',
    attemptCount: 1,
    scheduledAttemptCount: 1,
    nextAttemptAt: null,
    dueAt: null,
    lastStatusCode: 503,
    lastError: null,
    createdAt: time,
    updatedAt: time,
    ...parts,
  };
  const next = keptRow(deliveryDocument(delivery), owner, event.createdAt, event.createdAt);
  return { table: 'deliveries', id, expect: { absent: true }, next };
}

export async function commit(store: Store, changes: readonly Change[], events: readonly EventEntry[] = []) {
  const made = await store.commit({ changes, events });
  assert.equal(made.outcome, 'committed');
}

/** @returns its id */
export async function addEndpoint(store: Store, parts: object = {}): Promise<string> {
  const id = `ep_${newId()}`;
  const time = new Date(now).toISOString();
  const fields = {
    url: 'https://shop.example/',
    events: ['orders.*'],
    scheme: 'standard',
    status: 'enabled',
  };
  const doc = JSON.stringify({ id, ...fields, ...parts, createdAt: time, updatedAt: time });
  const secrets = JSON.stringify({ secrets: [], scopes: ['read', 'webhooks'] });
  const expect = { absent: true } as const;
  await commit(store, [
    { table: 'endpoints', id, expect, next: { ...keptRow(doc, owner, now, now), search: '' } },
    { table: endpointSecretsTable, id, expect, next: keptRow(secrets, owner, now, now) },
  ]);
  return id;
}

export type Begun = Partial<Pick<NewRecovery, 'dryRun'>> & {
  readonly since: number;
  readonly until?: number;
};

/** @returns its id */
export async function begin(store: Store, endpointId: string, { since, until = now, dryRun = false }: Begun) {
  const id = `rcv_${newId()}`;
  const { change } = beginRecovery({
    id,
    endpointId,
    since: new Date(since).toISOString(),
    until: new Date(until).toISOString(),
    dryRun,
    last: await store.head(),
    at: now,
    owner,
  });
  await commit(store, [change]);
  return id;
}

export type Following = {
  readonly recoveries: ReturnType<typeof createRecoveries>;
  readonly woken: string[];
  readonly failures: unknown[];
  /** What became of it, once it runs no more. */
  ended(id: string): Promise<Recovery>;
};

export type FollowOptions = {
  /** Which endpoints this process sends for. Default all. */
  readonly owns?: (endpointId: string) => boolean;
  /** What the directory reads, where the store of the recoveries misbehaves. */
  readonly directoryStore?: Store;
};

/** Starts what carries recoveries out. */
export async function follow(
  context: TestContext,
  store: Store,
  { owns = () => true, directoryStore = store }: FollowOptions = {},
): Promise<Following> {
  const clock = () => now;
  const directory = await openDirectory(directoryStore, clock);
  const woken: string[] = [];
  const failures: unknown[] = [];
  const recoveries = createRecoveries(
    { ...servicesOver(store, { clock, newId, observe: (fact) => void failures.push(fact) }), directory },
    { owns, onChange: () => () => undefined },
    { changesForAll: () => [], announce: (ids) => void woken.push(...ids) },
    createWants([]),
  );
  recoveries.start();
  context.after(async () => {
    await recoveries.close();
    await directory.close();
  });
  return { recoveries, woken, failures, ended: (id) => ended(store, id) };
}

/** The recovery once it runs no more. */
async function ended(store: Store, id: string): Promise<Recovery> {
  for (;;) {
    const changed = Promise.withResolvers<void>();
    const stop = store.onChange(recoveriesTable, changed.resolve);
    const recovery = await readRecovery(store, id);
    if (recovery !== undefined && recovery.status !== 'running') {
      stop();
      return recovery;
    }
    await changed.promise;
    stop();
  }
}

export async function readRecovery(store: Store, id: string): Promise<Recovery | undefined> {
  const row = await store.read(recoveriesTable, id);
  return row === undefined ? undefined : (JSON.parse(row.doc) as Recovery);
}

/** All deliveries to the endpoint, by their events. */
export async function deliveriesTo(store: Store, endpointId: string): Promise<Map<string, Delivery[]>> {
  const plan = store.plan({ table: 'deliveries', filter: always, sort: byId, limit: 10_000 });
  const all = (await plan.rows({ from: 'start' })).map(({ doc }) => JSON.parse(doc) as Delivery);
  return Map.groupBy(
    all.filter((delivery) => delivery.endpointId === endpointId),
    ({ eventId }) => eventId,
  );
}

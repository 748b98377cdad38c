/** Tickets: they open once, on whatever process, for a short time, and the store alone gives away nothing. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { always, byId } from '../../src/model/filter.ts';
import { createTickets, realtimeTicketsTable } from '../../src/realtime/identify.ts';
import type { Store } from '../../src/store/store.ts';
import { engines, openEmbedded } from '../harness/stores.ts';

const start = Date.UTC(2030, 0, 1);
const credential = { authorization: 'Bearer sk_very_secret' };

function ticketsOn(store: Store, time: { now: number }) {
  return createTickets({ store, clock: () => time.now, random: randomBytes }, 30);
}

for (const [engine, open] of engines) {
  test(`${engine}: a ticket that several use at once, on two processes, opens for one of them`, async (context) => {
    const [one, other] = await open(context);
    const time = { now: start };
    const ticket = await ticketsOn(one, time).make(credential);
    const uses = await Promise.all(
      Array.from({ length: 8 }, (_, at) => ticketsOn(at % 2 === 0 ? one : other, time).use(ticket)),
    );
    assert.deepEqual(
      uses.filter((used) => used !== undefined),
      [credential],
    );
    assert.equal(await ticketsOn(other, time).use(ticket), undefined);
  });
}

test('a ticket is good to the end of its time, and nothing that looks like one is', async (context) => {
  const store = await openEmbedded(context);
  const time = { now: start };
  const tickets = ticketsOn(store, time);
  const [early, late] = [await tickets.make(credential), await tickets.make({ cookie: 'a=b' })];
  assert.notEqual(early, late);
  for (const wrong of ['', 'x', `${early}x`, randomBytes(32).toString('base64url'), early.toUpperCase()]) {
    assert.equal(await tickets.use(wrong), undefined);
  }
  time.now += 29_999;
  assert.deepEqual(await tickets.use(early), credential);
  time.now += 1;
  assert.equal(await tickets.use(late), undefined);
});

test('the store holds neither the ticket nor the credential, and an altered row opens nothing', async (context) => {
  const store = await openEmbedded(context);
  const tickets = ticketsOn(store, { now: start });
  const ticket = await tickets.make(credential);
  const plan = store.plan({ table: realtimeTicketsTable, filter: always, sort: byId, limit: 10 });
  const [row] = await plan.rows({ from: 'start' });
  assert.ok(row !== undefined);
  const whole = JSON.stringify(row);
  for (const secret of [
    ticket,
    'sk_very_secret',
    Buffer.from('sk_very_secret').toString('base64url').slice(2, -2),
  ]) {
    assert.ok(!whole.includes(secret));
  }
  const { sealed, expiresAt } = JSON.parse(row.doc) as { sealed: string; expiresAt: number };
  const first = sealed.startsWith('A') ? 'B' : 'A';
  const doc = JSON.stringify({ sealed: `${first}${sealed.slice(1)}`, expiresAt });
  const { id, rev, owner, createdAt, updatedAt, deletedAt } = row;
  const next = { doc, owner, createdAt, updatedAt, deletedAt, search: null, references: [] };
  await store.commit({ changes: [{ table: realtimeTicketsTable, id, expect: { rev }, next }], events: [] });
  assert.equal(await tickets.use(ticket), undefined);
});

/** Counters shared through a real PostgreSQL: sums, order, sweeping, and limiters of two processes on top of them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { readRequestFields } from '../../src/http/request-fields.ts';
import { createRateLimiter, type RateLimiter } from '../../src/kernel/rate-limit/rate-limiter.ts';
import { anonymous } from '../../src/model/principal.ts';
import { addressOf } from '../../src/store/postgres/connection/address.ts';
import { createReadLane, type ReadLane } from '../../src/store/postgres/connection/lanes.ts';
import { systemTables } from '../../src/store/postgres/schema/schema-plan.ts';
import { createTallies } from '../../src/store/postgres/tallies.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { emptyDatabase, type TestDatabase } from '../harness/postgres-database.ts';

const schema = 'Odd "schema"';
const quoted = '"Odd ""schema"""';
const later = Date.now() + 3_600_000;

let server: TestDatabase;
let client: pg.Client;
const lanes: ReadLane[] = [];

before(async () => {
  server = await emptyDatabase();
  client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(`CREATE SCHEMA ${quoted}`);
  for (const sql of systemTables(quoted)) await client.query(sql);
});

after(async () => {
  await Promise.all(lanes.map((lane) => lane.close()));
  await client.end();
  await server.dispose();
});

function lane(timeoutMs = 10_000): ReadLane {
  const made = createReadLane({ address: addressOf(server.url), connectTimeoutMs: 10_000, timeoutMs }, 2);
  lanes.push(made);
  return made;
}

const one = (key: string, add = 1, expiresAt = later) => ({ key, add, expiresAt });

async function rows(): Promise<readonly string[]> {
  const found = await client.query(`SELECT key FROM ${quoted}.comity_tallies ORDER BY key`);
  return found.rows.map(({ key }: { key: string }) => key);
}

test('adds to counters and gives what each holds then, in the order asked', async () => {
  const tally = createTallies(lane(), schema);
  assert.deepEqual(await tally([one('b', 2), one('a', 1), one('é', 5)]), [2, 1, 5]);
  assert.deepEqual(await tally([one('é', 1), one('a', 0), one('b', 3)]), [6, 1, 5]);
  assert.deepEqual(await tally([one('a', 1), one('a', 1)]), [3, 3]);
});

test('makes no row for a counter that is only asked for', async () => {
  const tally = createTallies(lane(), schema);
  assert.deepEqual(await tally([one('never added', 0)]), [0]);
  assert.ok(!(await rows()).includes('never added'));
});

test('sends what is asked in one turn as one statement', async () => {
  const real = lane();
  let calls = 0;
  const send: ReadLane['send'] = (call) => {
    calls += 1;
    return real.send(call);
  };
  const tally = createTallies({ send }, schema);
  const totals = await Promise.all(Array.from({ length: 50 }, () => tally([one('turn', 2)])));
  assert.deepEqual(new Set(totals.flat()), new Set([100]));
  assert.equal(calls, 1);
});

test('loses nothing and blocks nobody where processes add to the same counters in any order', async () => {
  const tallies = [lane(), lane(), lane()].map((own) => createTallies(own, schema));
  const keys = Array.from({ length: 200 }, (_, index) => `crowded ${index}`);
  for (let round = 0; round < 15; round += 1) {
    await Promise.all(
      tallies.map((tally, index) => {
        const order = index === 0 ? keys : index === 1 ? keys.toReversed() : keys.toSorted();
        return tally(order.map((key) => one(key)));
      }),
    );
  }
  const totals = await (tallies[0] ?? assert.fail())(keys.map((key) => one(key, 0)));
  assert.deepEqual(new Set(totals), new Set([45]));
});

test('keeps a counter that is added to again although it was over', async () => {
  const tally = createTallies(lane(), schema);
  await tally([one('again', 1, Date.now() - 3_600_000)]);
  assert.deepEqual(await tally([one('again', 1)]), [2]);
  const found = await client.query(`SELECT expires_at FROM ${quoted}.comity_tallies WHERE key = 'again'`);
  assert.equal(Number(found.rows[0].expires_at), later);
});

test('sweeps out what is over, a slice at a time, and nothing else', async () => {
  await client.query(`TRUNCATE ${quoted}.comity_tallies`);
  const tally = createTallies(lane(), schema);
  const over = Date.now() - 3_600_000;
  for (let part = 0; part < 4; part += 1) {
    await tally(Array.from({ length: 1000 }, (_, index) => one(`over ${part} ${index}`, 1, over)));
  }
  const kept = Array.from({ length: 300 }, (_, index) => one(`kept ${index}`));
  await tally(kept);
  for (let round = 0; round < 40 && (await rows()).length > kept.length; round += 1) await tally(kept);
  assert.deepEqual(await rows(), kept.map(({ key }) => key).toSorted());
});

test('rejects everyone who asked in a turn when the database cannot be reached', async () => {
  const address = addressOf('postgres://nobody@127.0.0.1:1/none');
  const gone = createReadLane({ address, connectTimeoutMs: 500, timeoutMs: 500 }, 1);
  lanes.push(gone);
  const tally = createTallies(gone, schema);
  const asked = await Promise.allSettled([tally([one('x')]), tally([one('y')])]);
  for (const result of asked) {
    assert.ok(result.status === 'rejected' && result.reason instanceof StoreUnavailable);
  }
});

test('two processes on one database admit together little more than one limit', async () => {
  const processes = [counted(), counted()];
  const nowMs = Date.now();
  const request = { method: 'GET', peer: '203.0.113.7', fields: readRequestFields([]) };
  const burst = 50;
  let total = 0;
  let asking: boolean;
  do {
    asking = false;
    for (const { limiter, exchange } of processes) {
      const told = exchange();
      let admitted = 0;
      while (admitted < burst && limiter.admit(request, anonymous, nowMs)?.exceeded === false) admitted += 1;
      total += admitted;
      if (admitted === 0) continue;
      asking = true;
      await told;
    }
  } while (asking);
  await Promise.all(processes.map(({ limiter }) => limiter.close()));
  // Each is behind the other by one burst at most.
  assert.ok(total >= 1000 && total <= 1000 + 2 * burst, `${total}`);
});

/** A process that counts; `exchange` resolves when it has next told the others and heard of them. */
function counted(): { limiter: RateLimiter; exchange: () => Promise<void> } {
  const tally = createTallies(lane(), schema);
  let next = Promise.withResolvers<void>();
  const limits = {
    rateLimitReads: 1000,
    rateLimitWrites: 0,
    rateLimitSyncMs: 10,
    rateLimitFileKibibytes: 0,
    rateLimitKeysMax: 100,
    behindProxy: false,
    proxiesTrusted: 1,
  };
  const store: Parameters<typeof createRateLimiter>[1] = {
    shared: true,
    tally: async (tallies) => {
      const totals = await tally(tallies);
      // The limiter takes the totals in before whoever waits goes on.
      setImmediate(next.resolve);
      next = Promise.withResolvers<void>();
      return totals;
    },
  };
  const limiter = createRateLimiter(limits, store, (error) => assert.fail(String(error)));
  return { limiter, exchange: () => next.promise };
}

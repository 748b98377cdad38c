import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { addressOf } from '../../../src/store/postgres/connection/address.ts';
import type { ConnectionOptions } from '../../../src/store/postgres/connection/connection.ts';
import { ConnectionLost } from '../../../src/store/postgres/connection/connection.ts';
import { createReadLane, type ReadLane } from '../../../src/store/postgres/connection/lanes.ts';
import { StoreUnavailable } from '../../../src/store/store.ts';
import type { Ending } from '../../harness/listening.ts';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { open, sql, untilAsleep } from './open.ts';
import { Wire } from './wire.ts';

let server: TestDatabase;
before(async () => {
  server = await emptyDatabase();
});
after(() => server.dispose());

/** A lane of two connections over a wire, both standing; `made` resolves once so many sessions have been made. */
async function openLane(
  context: Ending,
  options: Partial<ConnectionOptions> = {},
): Promise<{ lane: ReadLane; wire: Wire; made: (sessions: number) => Promise<void> }> {
  const wire = await Wire.before(server.url);
  const changes = new EventEmitter();
  let sessions = 0;
  const connecting = {
    address: addressOf(wire.url),
    connectTimeoutMs: 10_000,
    timeoutMs: 10_000,
    onConnected() {
      sessions += 1;
      changes.emit('made');
    },
    ...options,
  };
  const lane = createReadLane(connecting, 2);
  context.after(async () => {
    await lane.close();
    await wire.close();
  });
  const made = async (count: number): Promise<void> => {
    while (sessions < count) await once(changes, 'made');
  };
  await made(2);
  return { lane, wire, made };
}

test('a read goes where the least is under way', async (t) => {
  const { lane, wire } = await openLane(t);
  wire.hold();
  const answers = Array.from({ length: 6 }, (_, n) => lane.send(sql('SELECT $1::int', n)));
  await wire.untilAsked(6);
  assert.deepEqual(wire.asked, [3, 3]);
  wire.release();
  assert.deepEqual(await Promise.all(answers), [[[0]], [[1]], [[2]], [[3]], [[4]], [[5]]]);
});

test('a read whose connection breaks is sent once more', async (t) => {
  const { lane, wire } = await openLane(t);
  wire.hold();
  const answer = lane.send(sql('SELECT 1'));
  await wire.untilAsked(1);
  wire.cut();
  wire.release();
  assert.deepEqual(await answer, [[1]]);
});

test('a read that breaks every connection it is sent over fails the second time', async (t) => {
  const { lane } = await openLane(t);
  const observer = open(t, server.url).connection;
  const suicide = sql('SELECT pg_terminate_backend(pg_backend_pid()) FROM pg_sleep($1::float8)', 0);
  await assert.rejects(lane.send(suicide), ConnectionLost);
  assert.equal((await observer.send([sql('SELECT 1')])).length, 1);
});

test('a read whose time is over is not sent again', async (t) => {
  let lost = 0;
  const { lane, wire } = await openLane(t, { timeoutMs: 1000, onLost: () => (lost += 1) });
  wire.lossy = true;
  await assert.rejects(lane.send(sql('SELECT 1')), /was lost: no reply in time/);
  assert.equal(lost, 1);
});

test('a connection that has fallen silent gets nothing while another answers', async (t) => {
  const { lane } = await openLane(t);
  const observer = open(t, server.url).connection;
  const sleeping = lane
    .send(sql('SELECT 1 FROM pg_sleep($1::float8)', 3600))
    .catch((error: unknown) => error);
  const pids = new Set<unknown>();
  for (let n = 0; n < 10; n += 1) pids.add((await lane.send(sql('SELECT pg_backend_pid()')))[0]?.[0]);
  assert.equal(pids.size, 1);
  const [reply] = await observer.send([
    sql(
      "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'comity read' AND NOT pid = ANY ($1::int[])",
      [Number([...pids][0])],
    ),
  ]);
  const pid = Number(reply?.rows[0]?.[0]);
  await untilAsleep(observer, pid);
  await observer.send([sql('SELECT pg_cancel_backend($1::int)', pid)]);
  assert.ok((await sleeping) instanceof StoreUnavailable);
});

test('a faulty statement is told as the server told it, failing storage as unavailable', async (t) => {
  const { lane } = await openLane(t);
  await assert.rejects(
    lane.send(sql('SELECT 1 / $1::int', 0)),
    (error) => error instanceof pg.DatabaseError && error.code === '22012',
  );
  await assert.rejects(lane.send(sql(`DO $$ BEGIN RAISE SQLSTATE '53100'; END $$`)), StoreUnavailable);
});

test('a ping fails while no connection can be had, and succeeds again after', async (t) => {
  const { lane, wire, made } = await openLane(t);
  await lane.ping();
  wire.refusing = true;
  wire.cut();
  await assert.rejects(lane.ping(), StoreUnavailable);
  wire.refusing = false;
  await made(3);
  await lane.ping();
});

/**
 * Changes of one row by three processes on one database. Each process commits its own changes as chains, and the chains race: none of them
 * may starve. COMITY_SOAK_ROUNDS=50 makes it 1,000 changes for each process.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { type Fleet, startFleet } from './fleet.ts';

const config = fileURLToPath(new URL('../../wire/fixtures/busy.config.ts', import.meta.url));
const processes = 3;
const changesEach = 20 * roundsOf(1, 5);
/** A process that starves would wait for many chains of the others. */
const waitRatioMax = 20;

let server: TestDatabase;
let fleet: Fleet;

before(async () => {
  server = await emptyDatabase();
  const env = {
    COMITY_RATE_LIMIT_WRITES: '0',
    COMITY_RATE_LIMIT_READS: '0',
    COMITY_CHANGE_WAIT_MS: '100000',
  };
  fleet = await startFleet(server.url, processes, env, config);
});

after(async () => {
  await fleet?.stop();
  await server?.dispose();
});

test('makes every change that three processes are asked for at once, and lets none of them starve', async (t) => {
  const made = await fleet.pick().send('POST', '/api/v1/tallies', { json: { marks: [] } });
  assert.equal(made.status, 201, made.body);
  const path = `/api/v1/tallies/${String(made.json().id)}`;
  const begun = performance.now();
  const waits: number[] = [];
  const headers = { 'Content-Type': 'application/json-patch+json' };
  const sent = fleet.running.flatMap((program, at) =>
    Array.from({ length: changesEach }, async (_, index) => {
      const body = JSON.stringify([{ op: 'add', path: '/marks/-', value: `${at}.${index}` }]);
      const answer = await program.send('PATCH', path, { headers, body });
      waits.push(performance.now() - begun);
      return answer.status;
    }),
  );
  const statuses = await Promise.all(sent);
  assert.deepEqual([...new Set(statuses)], [200]);
  const marks = (await fleet.pick().send('GET', path)).json().marks as readonly string[];
  assert.deepEqual([marks.length, new Set(marks).size], [sent.length, sent.length]);
  waits.sort((one, other) => one - other);
  const at = (share: number) => Math.round(waits[Math.floor(share * (waits.length - 1))] ?? 0);
  t.diagnostic(`${sent.length} changes; waited: half ${at(0.5)} ms, 99 % ${at(0.99)} ms, all ${at(1)} ms`);
  const ratio = at(0.99) / at(0.5);
  assert.ok(ratio <= waitRatioMax, `the last ones waited ${ratio} times as long as half of all`);
});

/** Three processes on one database of PostgreSQL. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { send } from '../../harness/exchange.ts';
import { emptyDatabase } from '../../harness/postgres-database.ts';
import { startFleet } from './fleet.ts';
import { environment, manySuite, processes } from './many-suite.ts';

manySuite('three processes on PostgreSQL', async () => {
  const server = await emptyDatabase();
  // All at once on an empty database: one of them makes the schema.
  const fleet = await startFleet(server.url, processes, environment);
  const stop = async (): Promise<void> => {
    await fleet.stop();
    await server.dispose();
  };
  return { running: fleet.running, stop };
});

it('the administrator key is made once by three first starts at once, printed by one, and works on all', async () => {
  const fresh = await emptyDatabase();
  const own = await startFleet(fresh.url, processes, { COMITY_ADMIN_KEY: '' });
  try {
    const printed = own.running.flatMap(({ stdout }) => stdout().match(/\bsk_[\w-]+/g) ?? []);
    assert.equal(new Set(printed).size, 1, printed.join(' '));
    const options = {
      anonymous: true,
      headers: { Authorization: `Bearer ${printed[0]}` },
      json: { text: 'x' },
    };
    for (const { port } of own.running) {
      assert.equal((await send(port, 'POST', `/api/v1/notes`, options)).status, 201);
    }
    const [first] = own.running;
    if (first !== undefined) await own.restart(first, 'kill');
    for (const { port } of own.running) {
      assert.equal((await send(port, 'POST', `/api/v1/notes`, options)).status, 201);
    }
  } finally {
    await own.stop();
    await fresh.dispose();
  }
});

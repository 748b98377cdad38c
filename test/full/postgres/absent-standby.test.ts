/**
 * A server whose only synchronous standby is gone: every transaction that waits for it hangs until it is cancelled. No standby is needed for
 * that, only its name.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { commitAll, event, put, rowAt, tables, things } from '../../contract/fixture.ts';
import { ownCluster } from '../../harness/postgres-server/own-cluster.ts';
import { until } from '../../harness/until.ts';

/** Beside other programs of a busy machine. */
const answerMsMax = 4000;

test('leaves no session at the server while its synchronous standby is gone, answers reads, and is ready again when writes are', async (t) => {
  const cluster = await ownCluster();
  const timeoutMs = 500;
  const store = await openPostgresStore({ url: cluster.url, tables, databaseTimeoutMs: timeoutMs });
  t.after(async () => {
    await store.close();
    await cluster.dispose();
  });
  const client = new pg.Client({ connectionString: cluster.url });
  client.on('error', () => undefined);
  await client.connect();
  const standby = async (name: string): Promise<void> => {
    await client.query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
    await client.query('SELECT pg_reload_conf()');
  };
  const sessions = async (): Promise<number> => {
    const { rows } = await client.query(
      `SELECT count(*)::int AS open FROM pg_stat_activity WHERE application_name LIKE 'comity%'`,
    );
    return rows[0].open;
  };
  await commitAll(store, put(things, 'kept', {}), event('evt_kept'));
  await store.ping();
  const before = await sessions();
  await standby('ghost');
  const endsAt = performance.now() + 12_000;
  // The checkpointer takes the setting over at a time of its own; commits wait from then on.
  await until(() =>
    commitAll(store, put(things, `lost ${performance.now()}`, {})).then(
      () => false,
      (error: unknown) => error instanceof StoreUnavailable,
    ),
  );
  while (performance.now() < endsAt) {
    const asked = performance.now();
    await assert.rejects(store.ping(), StoreUnavailable);
    // A ping that waited for the standby would take until the end.
    assert.ok(performance.now() - asked < answerMsMax);
    assert.equal((await rowAt(store, things, 'kept'))?.id, 'kept');
    await store.tally([{ key: 'k', add: 1, expiresAt: Date.now() + 60_000 }]);
    assert.equal(await store.purge('events', 0, 10), 0);
    assert.ok((await sessions()) <= before + 3, `${await sessions()} sessions, ${before} before`);
    await delay(250);
  }
  await standby('');
  await until(async () => {
    await store.ping().catch((error: unknown) => assert.ok(error instanceof StoreUnavailable));
    return store.ping().then(
      () => true,
      () => false,
    );
  });
  await commitAll(store, put(things, 'later', {}));
});

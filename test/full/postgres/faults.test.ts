/** What goes wrong at the server, and what a commit makes of it: done again, found out, or answered StoreUnavailable in time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { ProvisionalRevisions } from '../../../src/store/lines.ts';
import { commitTables, resolveUnit } from '../../../src/store/postgres/commit/commit-table.ts';
import type { Committer } from '../../../src/store/postgres/commit/committer.ts';
import { boldChanges } from '../../../src/store/postgres/commit/flight.ts';
import { transactionFrame } from '../../../src/store/postgres/commit/transaction.ts';
import { StoreUnavailable, type Unit } from '../../../src/store/store.ts';
import { event, put, remove, revOf, things, unit } from '../../contract/fixture.ts';
import {
  channel,
  counters,
  freshPlace,
  type Place,
  rowsOf,
  schema,
  startCommitter,
} from '../../postgres/commit/fixture.ts';

/** Makes every insert into things fail with the SQLSTATE until the given number of attempts was made. */
async function failInserts({ look }: Place, state: string, attempts: number): Promise<void> {
  await look.query(`
    CREATE SEQUENCE ${schema}.attempts;
    CREATE FUNCTION ${schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('${schema}.attempts') <= ${attempts} THEN RAISE EXCEPTION USING ERRCODE = '${state}', MESSAGE = 'made'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER fail BEFORE INSERT ON ${schema}.things FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.fail()`);
}

for (const state of ['40001', '40P01', '55P03', '57014', 'XX000', '53100']) {
  test(`does a batch again that the server undid with ${state}, and commits it once`, async (context) => {
    const place = await freshPlace(context);
    await failInserts(place, state, 3);
    const { committer } = startCommitter(context, place, { retriesMax: 3 });
    const commits = await Promise.all(
      [1, 2].map((id) => committer.commit(unit(put(things, `${id}`, {}), event(`${id}`)))),
    );
    assert.deepEqual(commits.map(revOf), [1, 2]);
    assert.equal((await rowsOf(place.look, 'events')).length, 2);
  });

  test(`answers StoreUnavailable when ${state} does not end`, async (context) => {
    const place = await freshPlace(context);
    await failInserts(place, state, 1000);
    const failures: unknown[] = [];
    const { committer } = startCommitter(context, place, {
      retriesMax: 2,
      onFailed: (error) => failures.push(error),
    });
    await assert.rejects(committer.commit(unit(put(things, 'a', {}), event('a'))), StoreUnavailable);
    const { rows } = await place.look.query(`SELECT last_value FROM ${schema}.attempts`);
    assert.equal(rows[0].last_value, 3);
    assert.equal(failures.length, 1);
    assert.equal((await rowsOf(place.look, 'events')).length, 0);
  });
}

test('answers StoreUnavailable, not a mistake of the asker, when a table is gone', async (context) => {
  const place = await freshPlace(context);
  const { committer } = startCommitter(context, place);
  await place.look.query(`ALTER TABLE ${schema}.things RENAME TO hidden`);
  await assert.rejects(committer.commit(unit(put(things, 'a', {}))), StoreUnavailable);
  await place.look.query(`ALTER TABLE ${schema}.hidden RENAME TO things`);
  revOf(await committer.commit(unit(put(things, 'a', {}))));
});

test('answers while another transaction holds the lock, does not begin what waited too long, and goes on after', async (context) => {
  const place = await freshPlace(context);
  const { committer, flights } = startCommitter(context, place, { timeoutMs: 600 });
  await committedAtLast(committer, unit(put(things, 'warm', {})));
  await place.look.query('BEGIN');
  await place.look.query(`SELECT FROM ${schema}.comity_counters WHERE n = 0 FOR UPDATE`);
  flights.length = 0;
  const first = committer.commit(unit(put(things, 'first', {})));
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  const second = committer.commit(unit(put(things, 'second', {})));
  // Only the ROLLBACK below lets go of the lock: a commit that waited for it would never be answered here.
  await assert.rejects(first, StoreUnavailable);
  await assert.rejects(second, StoreUnavailable);
  await place.look.query('ROLLBACK');
  await committedAtLast(committer, unit(put(things, 'third', {})));
  assert.deepEqual(
    (await rowsOf(place.look, 'things')).map(({ id }) => id),
    ['third', 'warm'],
  );
});

/** Asks again as a client does: on a busy machine a new connection alone may take longer than the time a commit has here. */
async function committedAtLast(committer: Committer, wanted: Unit): Promise<void> {
  const giveUpAt = performance.now() + 20_000;
  for (;;) {
    try {
      revOf(await committer.commit(wanted));
      return;
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || performance.now() > giveUpAt) throw error;
    }
  }
}

test('does not begin a unit that waited for as long as one may take', async (context) => {
  const place = await freshPlace(context);
  const { committer, flights } = startCommitter(context, place, {
    timeoutMs: 500,
    unitsPerTransactionMax: 1,
    retriesMax: 0,
  });
  await committedAtLast(committer, unit(put(things, 'warm', {})));
  await place.look.query('BEGIN');
  await place.look.query(`SELECT FROM ${schema}.comity_counters WHERE n = 0 FOR UPDATE`);
  flights.length = 0;
  const all = await Promise.allSettled(
    [1, 2, 3, 4, 5, 6, 7, 8].map((id) => committer.commit(unit(put(things, `${id}`, {})))),
  );
  await place.look.query('ROLLBACK');
  assert.ok(all.every((result) => result.status === 'rejected' && result.reason instanceof StoreUnavailable));
  assert.ok(flights.length < 8, `${flights.length} flights`);
});

test('goes on when its row among the writers was removed, or another epoch begun', async (context) => {
  const place = await freshPlace(context);
  const { committer } = startCommitter(context, place);
  revOf(await committer.commit(unit(put(things, 'a', {}))));
  await place.look.query(`DELETE FROM ${schema}.comity_writers`);
  assert.equal(revOf(await committer.commit(unit(put(things, 'b', {})))), 2);
  await place.look.query(`UPDATE ${schema}.comity_writers SET epoch = epoch + 10`);
  assert.equal(revOf(await committer.commit(unit(put(things, 'c', {})))), 3);
  assert.equal((await rowsOf(place.look, 'things')).length, 3);
});

test('removes the rows of writers not seen for a day, and no others', async (context) => {
  const place = await freshPlace(context);
  const dayAgo = Date.now() - 86_400_000;
  await place.look.query(
    `INSERT INTO ${schema}.comity_writers VALUES ('old', 1, 0, 0, 0, ${dayAgo - 60_000}), ('young', 1, 0, 0, 0, ${dayAgo + 60_000})`,
  );
  const { committer } = startCommitter(context, place, { writer: 'own' });
  await committer.commit(unit(put(things, 'a', {})));
  const { rows } = await place.look.query(`SELECT writer FROM ${schema}.comity_writers ORDER BY writer`);
  assert.deepEqual(
    rows.map(({ writer }) => writer),
    ['own', 'young'],
  );
});

test('writes nothing when its statements come outside of a transaction', async (context) => {
  const place = await freshPlace(context);
  const { committer, connection } = startCommitter(context, place);
  const rev = revOf(await committer.commit(unit(put(things, 'a', {}), put(things, 'b', {}))));
  const tables = commitTables(place.layouts, place.numbers, schema);
  const byName = new Map(tables.map((table) => [table.layout.table.name, table]));
  const units: readonly Unit[] = [
    unit(put(things, 'new', {})),
    unit(put(things, 'a', { name: 'x' }, rev)),
    unit(remove(things, 'b', rev)),
    unit(event('e')),
  ];
  const before = [await rowsOf(place.look, 'things'), await rowsOf(place.look, 'events')];
  const frame = transactionFrame(schema, 'nobody', channel);
  for (const each of units) {
    const { calls, touched } = boldChanges([resolveUnit(each, byName, new ProvisionalRevisions())], tables);
    for (const call of [...calls, frame.close(1, 1, touched), frame.resume()]) {
      await assert.rejects(connection.send([call]), `${call.sql} was carried out`);
    }
  }
  assert.deepEqual([await rowsOf(place.look, 'things'), await rowsOf(place.look, 'events')], before);
});

test('waits for the disk where the database was told not to', async (context) => {
  const place = await freshPlace(context);
  const database = new URL(place.url).pathname.slice(1);
  await place.look.query(`ALTER DATABASE ${database} SET synchronous_commit = off`);
  await place.look.query(`
    CREATE TABLE ${schema}.seen (value text);
    CREATE FUNCTION ${schema}.see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO ${schema}.seen VALUES (current_setting('synchronous_commit')); RETURN NEW;
    END $$;
    CREATE TRIGGER see AFTER INSERT ON ${schema}.things FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.see()`);
  const { committer } = startCommitter(context, place);
  await committer.commit(unit(put(things, 'a', {})));
  const { rows } = await place.look.query(`SELECT value FROM ${schema}.seen`);
  assert.deepEqual(rows, [{ value: 'on' }]);
});

test('commits every unit once while its sessions are terminated again and again', async (context) => {
  const place = await freshPlace(context);
  const { committer } = startCommitter(context, place, { timeoutMs: 10_000 });
  const witnesses = new pg.Pool({ connectionString: place.url, max: 2 });
  // The database is dropped at the end, whoever is still connected.
  witnesses.on('error', () => undefined);
  context.after(() => witnesses.end());
  const revs: number[] = [];
  let terminations = 0;
  /** As a client does: after an answer that says nothing, looks whether the unit was made. */
  const commitOrLook = async (each: Unit, id: string): Promise<number> => {
    for (;;) {
      try {
        return revOf(await committer.commit(each));
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        const { rows } = await witnesses.query(`SELECT rev FROM ${schema}.events WHERE id = $1`, [id]);
        if (rows.length > 0) return Number(rows[0].rev);
        await pause(20);
      }
    }
  };
  const caller = async (name: number): Promise<void> => {
    let rev: number | undefined;
    for (let round = 0; round < 40; round += 1) {
      const id = `${name} ${round}`;
      const change = put(things, `own ${name}`, { stock: round }, rev);
      rev = await commitOrLook(unit(change, event(id)), id);
      revs.push(rev);
      if (revs.length % 30 !== 0 || terminations >= 8) continue;
      terminations += 1;
      // Not waited for: it strikes somewhere in the next batches.
      void witnesses.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'comity commit' AND datname = current_database()`,
      );
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, name) => caller(name)));
  assert.equal(terminations, 8);
  assert.equal(new Set(revs).size, 320);
  const events = await rowsOf(place.look, 'events');
  assert.deepEqual(
    events.map(({ rev }) => rev).toSorted((a, b) => a - b),
    revs.toSorted((a, b) => a - b),
  );
  assert.equal((await counters(place.look))[''], Math.max(...revs));
});

test('refuses at once while there is no server to be reached', async (context) => {
  const place = await freshPlace(context);
  const { committer } = startCommitter(context, place, { url: 'postgres://nobody@127.0.0.1:1/none' });
  const started = performance.now();
  await assert.rejects(committer.commit(unit(put(things, 'a', {}))), StoreUnavailable);
  await assert.rejects(committer.commit(unit(put(things, 'b', {}))), StoreUnavailable);
  assert.ok(performance.now() - started < 2500);
});

/** The connection breaks in the middle of a commit: the outcome is found out, and told truthfully. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import type { Commit, Unit } from '../../../src/store/store.ts';
import { event, put, revOf, things, unit } from '../../contract/fixture.ts';
import { Cutter } from '../../postgres/commit/cutter.ts';
import { counters, freshPlace, rowsOf, startCommitter } from '../../postgres/commit/fixture.ts';

const soak = process.env.COMITY_SOAK === '1';
/** Points of a flight that are tried; the first and the last octet are among them. */
const lostPoints = soak ? 12 : 5;
/** Each of these may cost the time for which the server lets a transaction stand idle. */
const heldPoints = soak ? 5 : 2;

type Kind = {
  readonly name: string;
  /** Units that are committed at once. */
  readonly units: (round: number, rev: number) => readonly Unit[];
  /** What must become of them, however the connection breaks. */
  readonly check: (commits: readonly Commit[]) => void;
};

/** One flight: nothing stands in the way. */
const bold: Kind = {
  name: 'in one flight',
  units: (round) =>
    [1, 2, 3].map((index) => {
      const id = `bold ${round} ${index}`;
      return unit(put(things, id, { sku: id }), event(`evt ${id}`));
    }),
  check: (commits) => {
    for (const [index, commit] of commits.entries()) {
      assert.equal(commit.outcome, 'committed');
      assert.ok(index === 0 || revOf(commit) === revOf(commits[index - 1] as Commit) + 1);
    }
  },
};

/** Two flights: the units change one row. */
const careful: Kind = {
  name: 'in two flights',
  units: (round, rev) =>
    [1, 2].map((index) => {
      const id = `evt careful ${round} ${index}`;
      return unit(put(things, `contended ${round}`, { stock: index }, rev), event(id));
    }),
  check: ([first, second]) => {
    assert.ok(first?.outcome === 'committed' && second?.outcome === 'superseded');
    assert.equal(second.current?.rev, first.rev);
  },
};

for (const { name, units, check } of [bold, careful]) {
  for (const rest of ['lost', 'late'] as const) {
    for (const direction of ['to server', 'to client'] as const) {
      test(`commits once ${name} where octets ${direction} stop at any point (${rest})`, async (context) => {
        const place = await freshPlace(context);
        const cutter = await Cutter.before(place.url, context);
        const failures: unknown[] = [];
        // The server ends the transaction of a client that is gone after 0.6 of this.
        const options = {
          url: cutter.url,
          timeoutMs: 1500,
          onFailed: (error: unknown) => failures.push(error),
        };
        const points = rest === 'late' ? heldPoints : lostPoints;
        let bytes = 0;
        let events = 0;
        for (let round = -1; round < points; round += 1) {
          const { committer, connection } = startCommitter(context, place, options);
          const rev = revOf(await committer.commit(unit(put(things, `contended ${round}`, {}))));
          if (round === -1) await Promise.all(units(-2, rev).map((each) => committer.commit(each)));
          // A round without a cut tells how long a flight is once its statements are prepared.
          if (round >= 0) cutter.arm({ direction, rest, afterBytes: pointOf(round, points, bytes) });
          else cutter.countFromHere();
          const commits = await Promise.all(units(round, rev).map((each) => committer.commit(each)));
          if (round === -1) bytes = cutter.passedBytes(direction);
          cutter.disarm();
          check(commits);
          await cutter.deliver();
          const revs = commits.filter((commit) => commit.outcome === 'committed').map(revOf);
          events += revs.length;
          // The store-wide revision is that of the newest unit: nothing was made that was not told.
          assert.equal((await counters(place.look))[''], revs.at(-1));
          await committer.close();
          await connection.close();
        }
        const rows = (await rowsOf(place.look, 'events')).filter(({ id }) => !id.includes(' -2'));
        assert.equal(rows.length, events);
        assert.equal(new Set(rows.map((row) => row.rev)).size, events);
        assert.deepEqual(failures, []);
      });
    }
  }
}

function pointOf(round: number, points: number, bytes: number): number {
  return Math.round(((bytes - 1) * round) / (points - 1)) + 1;
}

test('keeps a flight that reaches the server late from committing what was answered as refused', async (context) => {
  const place = await freshPlace(context);
  const cutter = await Cutter.before(place.url, context);
  const { committer } = startCommitter(context, place, { url: cutter.url });
  await committer.commit(unit(put(things, 'warm', {})));
  // Another writer is about to commit the very row.
  await place.look.query('BEGIN');
  await place.look.query('SELECT FROM comity.comity_counters WHERE n = 0 FOR UPDATE');
  await place.look.query(`INSERT INTO comity.things SELECT 'x', 1, NULL, 1, 1, NULL, '{"id":"x"}'`);
  cutter.arm({ direction: 'to server', rest: 'late', afterBytes: 1 });
  const commit = committer.commit(unit(put(things, 'x', {})));
  await once(cutter.events, 'cut');
  await place.look.query('COMMIT');
  assert.equal((await commit).outcome, 'superseded');
  await place.look.query(`DELETE FROM comity.things WHERE id = 'x'`);
  await cutter.deliver();
  assert.deepEqual(
    (await rowsOf(place.look, 'things')).map(({ id }) => id),
    ['warm'],
  );
});

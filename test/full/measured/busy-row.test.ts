/** Many changes of one row at once: they are computed one after the other, which must not hold the event loop. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertLoopFree, inOneRunOf, startAttacked } from '../attack/attacked-program.ts';

const config = fileURLToPath(new URL('../../wire/fixtures/busy.config.ts', import.meta.url));
const patchType = { 'Content-Type': 'application/json-patch+json' };

for (const [size, titleOctets, count] of [
  ['short', 10, 400],
  ['long', 30_000, 300],
] as const) {
  test(`${count} patches of one ${size} row hold the event loop for none of the others`, (t) =>
    inOneRunOf(t, async () => {
      const env = { COMITY_RATE_LIMIT_WRITES: '0', COMITY_LOG_LEVEL: 'warn' };
      const attacked = await startAttacked(t, { config, env });
      const { program } = attacked;
      const json = { marks: [], title: 'x'.repeat(titleOctets) };
      const made = await program.send('POST', '/api/v1/tallies', { json });
      const path = `/api/v1/tallies/${String(made.json().id)}`;
      const patch = (mark: string) => {
        const body = JSON.stringify([{ op: 'add', path: '/marks/-', value: mark }]);
        return program.send('PATCH', path, { headers: patchType, body });
      };
      // Code that runs for the first time is slow whatever it does.
      for (let index = 0; index < 100; index += 1) await patch(`first${index}`);
      await attacked.health();
      const answers = await Promise.all(Array.from({ length: count }, (_, index) => patch(`m${index}`)));
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
      await assertLoopFree(attacked, 'patches');
      await attacked.assertUnharmed();
    }));
}

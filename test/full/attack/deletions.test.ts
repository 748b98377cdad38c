/** Requests of some kilobytes that delete hundreds of megabytes: the program has 512 MiB, lives, and answers others meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { until } from '../../harness/until.ts';
import { startAttacked } from './attacked-program.ts';

const config = fileURLToPath(new URL('./fixtures/notes.config.ts', import.meta.url));
/** As many as ended a program of 512 MiB that read them all. */
const documents = 300;
const text = 'x'.repeat(1_000_000);

test('a bulk deletion of 100 and of 300 documents of 1 MB leaves the program unharmed, and deletes all or nothing', async (t) => {
  const attacked = await startAttacked(t, { config, env: { COMITY_RATE_LIMIT_WRITES: '0' } });
  const { program } = attacked;
  const ids: string[] = [];
  while (ids.length < documents) {
    const made = await program.send('POST', '/api/v1/guarded', { json: { text } });
    assert.equal(made.status, 201, made.body.slice(0, 200));
    ids.push(String(made.json().id));
  }
  const left = async (): Promise<number> =>
    Number(
      (
        await program.send('GET', '/api/v1/guarded?limit=1&fields=id', {
          headers: { Prefer: 'count=exact' },
        })
      ).headers['x-total-count'],
    );
  await attacked.health();
  for (const count of [100, documents]) {
    const json = { ids: ids.slice(0, count) };
    const path = '/api/v1/guarded/bulk-delete';
    const refused = await program.send('POST', path, { json });
    assert.equal(refused.status, 413, refused.body);
    const later = await program.send('POST', path, { json, headers: { Prefer: 'respond-async' } });
    assert.equal(later.status, 202, later.body);
    const location = String(later.headers.location);
    await until(async () => (await program.send('GET', location)).json().status === 'failed');
    assert.equal(await left(), documents);
  }
  await attacked.assertUnharmed();
});

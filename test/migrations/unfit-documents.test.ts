/** Documents that a changed declaration does not fit and no migration mends: refused before the schema is changed. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { startServer } from '../harness/running-server.ts';
import { openProjects } from './migrated-project.ts';

const source = (at: string, indexes: string) =>
  `{ collections: { visits: collection({ schema: Type.Object({ at: ${at} }), indexes: ${indexes}, access: { read: 'public' } }) } }`;

for (const [engine, open] of await openProjects()) {
  test(`${engine}: documents that need a migration are refused before any step, and a server of the earlier declaration starts`, async () => {
    const { configure, seed, run, environment, folder } = open();
    const earlier = configure('earlier', source('Type.String()', `['at']`));
    await seed(earlier, 'visits', [{ at: 'yesterday' }, { at: '2026-01-31T12:00:00Z' }]);
    const later = configure('later', source(`Type.String({ format: 'date-time' })`, `['at', ['at', 'id']]`));
    for (const command of [
      ['migrate', '--yes'],
      ['serve', '--migrate'],
    ]) {
      const { code, stdout, stderr } = await run(later, ...command);
      assert.deepEqual([code, stdout], [5, ''], stderr);
      assert.match(stderr, /of 2 documents, 2 do not fit, 1 of which needs a migration, such as visits\//);
    }
    const env = { ...environment(earlier), COMITY_DEVELOPMENT: 'off' };
    const server = await startServer({ folder: join(folder, 'data'), env });
    const found = await server.send('GET', '/api/v1/visits?at=yesterday&fields=at');
    assert.deepEqual(found.json().items, [{ at: 'yesterday' }], found.body);
    await server.stop();
  });
}

/** What this process remembers of stored queries; test/wire/resources/stored-queries.test.ts has their conduct. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStoredQueries, queriesTable } from '../../src/resources/collection/stored-queries.ts';
import { openEmbedded } from '../harness/stores.ts';

test('a query whose row a failover lost is stored again', async (context) => {
  const embedded = await openEmbedded(context);
  const listeners: (() => void)[] = [];
  const onLost = (listener: () => void): (() => void) => {
    listeners.push(listener);
    return () => undefined;
  };
  const queries = createStoredQueries({ ...embedded, onLost }, (text) => `mac${text.length}`, {
    storedQuerySeconds: 3600,
    storedQueryBytesMax: 65_536,
    storedQueriesPerOwnerBytesMax: 65_536,
    storedQueriesBytesMax: 65_536,
    targetBytesMax: 8000,
  });
  const asked = { collection: 'things', mediaType: 'application/json', text: 'x'.repeat(9000) };
  const query = { ...asked, token: queries.tokenOf(asked) };
  const now = Date.now();
  assert.equal(await queries.keep(query, 'owner', now), true);
  const row = await embedded.read(queriesTable, query.token);
  assert.ok(row !== undefined);
  const removal = { table: queriesTable, id: row.id, expect: { rev: row.rev }, next: null };
  await embedded.commit({ changes: [removal], events: [] });
  for (const listener of listeners) listener();
  assert.equal(await queries.keep(query, 'owner', now), true);
  assert.equal((await queries.find(query.token))?.text, asked.text);
});

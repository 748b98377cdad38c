import assert from 'node:assert/strict';
import test from 'node:test';
import { usersTable } from '../../../src/accounts/account-tables.ts';
import { createFindUser } from '../../../src/accounts/users/user-row.ts';
import { keptRow } from '../../../src/store/store.ts';
import { embeddedOnly } from '../../harness/stores.ts';

for (const [engine, open] of embeddedOnly) {
  test(`${engine}: finds an account by its id and by its address, with the revision it was read at`, async (context) => {
    const [store] = await open(context);
    const find = createFindUser(store);
    const doc = JSON.stringify({ id: 'usr_1', email: 'ada@shop.example', name: 'Ada', roles: [] });
    const next = keptRow(doc, 'usr_1', 5, 5);
    const commit = await store.commit({
      changes: [{ table: usersTable, id: 'usr_1', expect: { absent: true }, next }],
      events: [],
    });
    assert.equal(commit.outcome, 'committed');
    const byEmail = await find.byEmail('ada@shop.example');
    const byId = await find.byId('usr_1');
    assert.equal(byEmail?.user.name, 'Ada');
    assert.deepEqual(byEmail, byId);
    assert.equal(byEmail?.row.rev, commit.outcome === 'committed' ? commit.rev : -1);
    assert.equal(await find.byEmail('eve@shop.example'), undefined);
    assert.equal(await find.byId('usr_2'), undefined);
  });

  test(`${engine}: finds nobody by an address that was given up`, async (context) => {
    const [store] = await open(context);
    const find = createFindUser(store);
    const write = (email: string, expect: { absent: true } | { rev: number }) => {
      const next = keptRow(JSON.stringify({ id: 'usr_1', email }), 'usr_1', 5, 5);
      return store.commit({ changes: [{ table: usersTable, id: 'usr_1', expect, next }], events: [] });
    };
    const made = await write('old@shop.example', { absent: true });
    assert.ok(made.outcome === 'committed');
    await write('new@shop.example', { rev: made.rev });
    assert.equal(await find.byEmail('old@shop.example'), undefined);
    assert.equal((await find.byEmail('new@shop.example'))?.user.id, 'usr_1');
  });
}

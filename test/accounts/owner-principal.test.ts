/** Whom owners stand for (§6): as they are now, and never beyond what the endpoint was made with. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keysTable, usersTable } from '../../src/accounts/account-tables.ts';
import { administrator } from '../../src/accounts/admin-key.ts';
import { createOwnerPrincipal } from '../../src/accounts/owner-principal.ts';
import { operatorId } from '../../src/model/principal.ts';
import type { Row } from '../../src/store/store.ts';

const user = {
  id: 'usr_ada',
  email: 'ada@shop.example',
  emailVerified: true,
  roles: ['editor'],
  scopes: ['read', 'write', 'webhooks'],
  tenant: 'acme',
  disabled: false,
};

function rowOf(doc: object): Row {
  return {
    id: '',
    rev: 1,
    doc: JSON.stringify(doc),
    owner: null,
    createdAt: 0,
    updatedAt: 0,
    deletedAt: null,
  };
}

function ownersWith(rows: Readonly<Record<string, Row>>) {
  return createOwnerPrincipal({ read: (table, id) => rows[`${table}/${id}`] });
}

test('an account is what it is now, within the scopes of the credential', async () => {
  const find = ownersWith({ [`${usersTable}/usr_ada`]: rowOf(user) });
  const principal = await find('usr_ada', ['webhooks', 'admin']);
  assert.deepEqual([...(principal?.scopes ?? [])], ['webhooks']);
  assert.deepEqual([...(principal?.roles ?? [])], ['editor']);
  assert.equal(principal?.tenant, 'acme');
});

test('an administrator is one only where the credential was', async () => {
  const row = rowOf({ ...user, roles: ['administrator'] });
  const find = ownersWith({ [`${usersTable}/usr_ada`]: row });
  assert.equal((await find('usr_ada', ['read', 'webhooks']))?.scopes.has('admin'), false);
  assert.equal((await find('usr_ada', ['read', 'admin']))?.scopes.has('admin'), true);
});

test('an account that is disabled or gone stands for nobody', async () => {
  const find = ownersWith({ [`${usersTable}/usr_ada`]: rowOf({ ...user, disabled: true }) });
  assert.equal(await find('usr_ada', ['read']), undefined);
  assert.equal(await find('usr_bob', ['read']), undefined);
  assert.equal(await find(null, ['read']), undefined);
});

test('the operator is the administrator, and with a narrower key only that', async () => {
  const find = ownersWith({});
  assert.equal(await find(operatorId, ['read', 'admin']), administrator);
  assert.deepEqual([...((await find(operatorId, ['webhooks']))?.scopes ?? [])], ['webhooks']);
});

test('a key that owns itself stands until it is revoked', async () => {
  const find = ownersWith({ [`${keysTable}/key_a`]: rowOf({ id: 'key_a' }) });
  assert.equal((await find('key_a', ['read']))?.id, 'key_a');
  assert.equal(await find('key_b', ['read']), undefined);
});

test('an account whose row lacks members with a default has the defaults', async () => {
  const { id, email } = user;
  const find = ownersWith({ [`${usersTable}/usr_ada`]: rowOf({ id, email }) });
  const principal = await find('usr_ada', ['read', 'write', 'admin']);
  assert.deepEqual([...(principal?.scopes ?? [])], ['read', 'write']);
  assert.deepEqual([...(principal?.roles ?? [])], []);
});

/** What keys are good for that others may hold (§5.2): those that stand in public pages, and those that were made with a key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  base,
  bearer,
  changeUser,
  makeKey,
  register,
  serveAccounts,
} from '../../harness/account-client.ts';

const { client } = await serveAccounts();
const bob = await register(client, 'bob@shop.example', 'correct horse battery');

const apiKey = (key: string) => ({ 'X-API-Key': key });

function post(path: string, json: unknown, headers: Readonly<Record<string, string>>): Promise<Answer> {
  return client.ask('POST', `${base}${path}`, { json, headers });
}

async function me(key: string): Promise<Answer> {
  return client.ask('GET', `${base}/auth/me`, { headers: apiKey(key) });
}

test('a publishable key, which anyone can find in a page, sees nothing of its owner’s', async () => {
  const cy = await register(client, 'cy@shop.example', 'correct horse battery');
  await changeUser(client, cy.userId, { roles: ['editor'], tenant: 'north' });
  const note = await post('/notes', { text: 'private' }, bearer(cy.token));
  assert.equal(note.status, 201);
  const { id, key } = await makeKey(client, bearer(cy.token), { kind: 'publishable' });
  const who = (await me(key)).json();
  assert.deepEqual(
    [who.id, who.kind, who.roles, who.scopes, who.tenant, who.email],
    [id, 'key', [], ['read'], null, undefined],
  );
  const get = (path: string) => client.ask('GET', path, { headers: apiKey(key) });
  assert.equal((await get(String(note.headers.location))).status, 404);
  for (const path of ['/notes', '/keys']) assert.deepEqual((await get(`${base}${path}`)).json().items, []);
  assert.equal((await get(`${base}/users/${cy.userId}`)).status, 404);
  assert.equal((await get(`${base}/products`)).status, 200);
  await changeUser(client, cy.userId, { disabled: true });
  assert.equal((await me(key)).status, 401);
});

test('revoking a key ends the keys that were made with it, and those made with them', async () => {
  const first = await makeKey(client, bearer(bob.token));
  const second = await makeKey(client, apiKey(first.key));
  const third = await makeKey(client, apiKey(second.key), { kind: 'publishable' });
  const beside = await makeKey(client, bearer(bob.token));
  const shown = await client.ask('GET', `${base}/keys/${second.id}`, { headers: bearer(bob.token) });
  assert.equal(shown.json().madeBy, first.id);
  for (const { key } of [first, second, third]) assert.equal((await me(key)).status, 200);
  await client.ask('DELETE', `${base}/keys/${first.id}`, { headers: bearer(bob.token) });
  for (const { key } of [first, second, third]) assert.equal((await me(key)).status, 401);
  assert.equal((await me(beside.key)).status, 200);
});

test('keys are made one with the other eight times at most', async () => {
  let { key } = await makeKey(client, bearer(bob.token));
  for (let made = 1; made < 8; made += 1) ({ key } = await makeKey(client, apiKey(key)));
  const ninth = await post('/keys', { name: 'one too many', kind: 'secret' }, apiKey(key));
  assert.equal(ninth.status, 422, ninth.body);
  assert.equal((await me(key)).status, 200);
});

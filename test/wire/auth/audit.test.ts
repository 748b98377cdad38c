/** `/audit`: what happened to accounts and keys, for administrators to read and for nobody to write. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  asAdministrator,
  base,
  bearer,
  makeKey,
  register,
  serveAccounts,
} from '../../harness/account-client.ts';

const { client } = await serveAccounts();

test('administrators read it as a list, by QUERY and one by one; others are refused', async () => {
  const ada = await register(client, 'ada@shop.example', 'correct horse battery');
  const { id } = await makeKey(client, bearer(ada.token));
  const path = `${base}/audit`;
  const listed = await client.ask('GET', `${path}?type=key.created`, { headers: asAdministrator });
  assert.equal(listed.status, 200, listed.body);
  const [fact, ...others] = listed.json().items as readonly Record<string, unknown>[];
  assert.equal(others.length, 0);
  assert.match(String(fact?.id), /^aud_/);
  const actor = { kind: 'user', id: ada.userId };
  assert.deepEqual([fact?.actor, fact?.subject, fact?.address], [actor, id, '127.0.0.1']);
  assert.match(String(fact?.requestId), /^[0-9a-f]+-[0-9a-f]+$/);
  const queried = await client.ask('QUERY', path, {
    headers: asAdministrator,
    json: { filter: { subject: id } },
  });
  assert.deepEqual(queried.json().items, [fact]);
  const one = await client.ask('GET', `${path}/${fact?.id}`, { headers: asAdministrator });
  assert.deepEqual(one.json(), fact);
  for (const [method, target] of [
    ['GET', path],
    ['QUERY', path],
    ['GET', `${path}/${fact?.id}`],
    ['GET', queried.headers.location ?? ''],
  ] as const) {
    const json = method === 'QUERY' ? { json: {} } : {};
    assert.equal((await client.ask(method, target, json)).status, 401, `${method} ${target}`);
    const known = await client.ask(method, target, { headers: bearer(ada.token), ...json });
    assert.equal(known.status, 403, `${method} ${target}`);
  }
});

test('nobody writes to it', async () => {
  for (const [method, path, allow] of [
    ['POST', `${base}/audit`, 'GET, HEAD, QUERY, OPTIONS'],
    ['PUT', `${base}/audit/aud_x`, 'GET, HEAD, OPTIONS'],
    ['PATCH', `${base}/audit/aud_x`, 'GET, HEAD, OPTIONS'],
    ['DELETE', `${base}/audit/aud_x`, 'GET, HEAD, OPTIONS'],
    ['POST', `${base}/audit/bulk-delete`, 'GET, HEAD, OPTIONS'],
  ] as const) {
    const answer = await client.ask(method, path, { headers: asAdministrator, json: {} });
    assert.deepEqual([answer.status, answer.headers.allow], [405, allow], `${method} ${path}`);
  }
});

test("the removal of a subject's events is in the trail before they are removed", async () => {
  const posted = await client.ask('POST', `${base}/events`, {
    headers: asAdministrator,
    json: { type: 'invoice.paid', data: { object: { id: 'inv_9' } } },
  });
  assert.equal(posted.status, 202, posted.body);
  const gone = await client.ask('POST', `${base}/events/expunge`, {
    headers: asAdministrator,
    json: { object: 'inv_9' },
  });
  assert.equal(gone.json().events, 1, gone.body);
  const trail = await client.ask('GET', `${base}/audit?type=events.expunged`, { headers: asAdministrator });
  const [entry, ...others] = trail.json().items as readonly Record<string, unknown>[];
  assert.deepEqual(others, []);
  assert.deepEqual(
    [entry?.actor, entry?.subject, entry?.detail],
    [{ kind: 'administrator-key', id: 'administrator' }, 'inv_9', { of: 'object' }],
  );
  const by = await client.ask('GET', `${base}/audit?actor.id=administrator&type=events.expunged`, {
    headers: asAdministrator,
  });
  assert.deepEqual(by.json().items, [entry]);
});

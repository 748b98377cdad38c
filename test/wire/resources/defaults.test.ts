/** Members with a default (§4.5): one that is removed has its default again, in every collection and by every method. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  asAdministrator,
  base,
  bearer,
  login,
  register,
  serveAccounts,
} from '../../harness/account-client.ts';

const password = 'correct horse battery';

const { client } = await serveAccounts({ env: { COMITY_LOGIN_ATTEMPTS: '0' } });

type Removal = {
  readonly name: string;
  readonly method: 'PATCH' | 'PUT';
  readonly type: string;
  /** Content that removes the members from a resource whose remaining fields are `rest`. */
  readonly content: (members: readonly string[], rest: object) => unknown;
};

const removals: readonly Removal[] = [
  {
    name: 'a merge patch',
    method: 'PATCH',
    type: 'application/merge-patch+json',
    content: (members) => Object.fromEntries(members.map((member) => [member, null])),
  },
  {
    name: 'a JSON Patch',
    method: 'PATCH',
    type: 'application/json-patch+json',
    content: (members) => members.map((member) => ({ op: 'remove', path: `/${member}` })),
  },
  { name: 'a PUT', method: 'PUT', type: 'application/json', content: (_, rest) => rest },
];

async function remove(
  { method, type, content }: Removal,
  path: string,
  members: readonly string[],
  rest: object,
): Promise<Record<string, unknown>> {
  const answer = await client.ask(method, path, {
    headers: { ...asAdministrator, 'Content-Type': type },
    body: JSON.stringify(content(members, rest)),
  });
  assert.equal(answer.status, 200, answer.body);
  const read = await client.ask('GET', path, { headers: asAdministrator });
  assert.equal(read.status, 200, read.body);
  assert.equal(answer.body, read.body);
  return read.json();
}

for (const [index, removal] of removals.entries()) {
  test(`an account keeps its credentials when ${removal.name} removes what has a default`, async () => {
    const email = `ada${index}@shop.example`;
    const { token, userId } = await register(client, email, password);
    const path = `${base}/users/${userId}`;
    const changed = await client.ask('PATCH', path, {
      headers: asAdministrator,
      json: { roles: ['editor'], scopes: ['read', 'webhooks'], emailVerified: true },
    });
    assert.equal(changed.status, 200, changed.body);
    const members = ['roles', 'scopes', 'emailVerified', 'disabled'];
    const { roles, scopes, emailVerified, disabled } = await remove(removal, path, members, { email });
    assert.deepEqual([roles, scopes, emailVerified, disabled], [[], ['read', 'write'], false, false]);
    const again = await login(client, email, password);
    for (const headers of [bearer(token), bearer(again.token)]) {
      assert.equal((await client.ask('GET', `${base}/auth/me`, { headers })).status, 200);
      assert.equal((await client.ask('GET', `${base}/products`, { headers })).status, 200);
    }
  });

  test(`an endpoint is enabled and has a scheme when ${removal.name} removes both`, async () => {
    const rest = { url: 'https://receiver.example/hooks', events: ['products.*'] };
    const json = { ...rest, scheme: 'plain', status: 'disabled' };
    const made = await client.ask('POST', `${base}/endpoints`, { headers: asAdministrator, json });
    assert.equal(made.status, 201, made.body);
    const path = String(made.headers.location);
    const { scheme, status } = await remove(removal, path, ['scheme', 'status'], rest);
    assert.deepEqual([scheme, status], ['standard', 'enabled']);
  });
}

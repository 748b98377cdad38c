/** The document of a program that is set up strictly: registration closed, addresses verified before a login, no mail server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../harness/exchange.ts';
import { serverOfFile } from '../harness/running-server.ts';
import {
  accounts,
  type DocumentSetting,
  documentOf,
  type Item,
  shopCollections,
  shopReceiving,
} from './fixture.ts';
import { promisedBy } from './promised.ts';

const setting: DocumentSetting = {
  receiving: shopReceiving,
  accounts: { ...accounts, registration: 'closed', verifiedEmailRequired: true, providers: [] },
};
const document = documentOf(shopCollections, '3.2', setting);
const email = 'ada@shop.example';
const password = 'correct horse battery staple';

const program = await serverOfFile({
  env: {
    COMITY_REGISTRATION: 'closed',
    COMITY_VERIFIED_EMAIL_REQUIRED: 'on',
    COMITY_PASSWORD_MEMORY_KIBIBYTES: '64',
    COMITY_PASSWORD_PASSES: '1',
  },
});
const promised = promisedBy(document, program);
const made = await promised.ask('POST', '/api/v1/users', { json: { email } });
await promised.ask('POST', `${made.headers.location}/password`, { json: { password } });

function post(path: string, json: unknown): Promise<Answer> {
  return promised.ask('POST', `/api/v1/auth/${path}`, { anonymous: true, json });
}

test('refuses registration, and with the right password an address that is not verified, as the document says', async () => {
  assert.equal((await post('register', { email: 'b@shop.example', password })).status, 403);
  assert.equal((await post('login', { email, password })).json().code, 'email_unverified');
  const basic = `Basic ${Buffer.from(`${email}:${password}`).toString('base64')}`;
  const read = await promised.ask('GET', '/api/v1/products', {
    anonymous: true,
    headers: { Authorization: basic },
  });
  assert.equal(read.json().code, 'email_unverified');
});

test('says 503 where a mail would be needed and none can be sent, as the document says', async () => {
  assert.equal((await post('verification', { email })).status, 503);
  assert.equal((await post('password-reset', { email })).status, 503);
});

test('refuses a part and a version that there is not', async () => {
  for (const [query, message] of [
    ['part=all', 'part must be application or operator, not all'],
    ['version=2', 'version must be 3.2 or 3.1, not 2'],
  ] as const) {
    const { status, json } = await program.send('GET', `/openapi.json?${query}`, { anonymous: true });
    assert.deepEqual([status, json().code, json().error], [400, 'query_parameter_invalid', message]);
  }
});

for (const part of ['application', 'operator'] as const) {
  test(`serves the part of the document of how it is set up: ${part}`, async () => {
    const served = (await program.send('GET', `/openapi.json?part=${part}`, { anonymous: true })).json();
    const expected = documentOf(shopCollections, '3.2', { ...setting, part });
    assert.deepEqual(Object.keys(served.paths as Item), Object.keys(expected.paths as Item));
    assert.deepEqual(served.paths, expected.paths);
    assert.deepEqual(served.components, expected.components);
  });
}

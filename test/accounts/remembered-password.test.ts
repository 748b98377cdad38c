/** A password that is remembered for Basic (§5.2) against the login limit (§8), in the real program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../harness/running-server.ts';
import { basic } from './fixtures/requests.ts';

test('a password that is remembered gives whoever is over the login limit no free guess', async (context) => {
  const program = await startServer({ env: { COMITY_LOGIN_ATTEMPTS: '3' } });
  context.after(() => program.stop());
  const account = { email: 'ann@shop.example', password: 'correct horse battery staple' };
  const registered = await program.send('POST', '/api/v1/auth/register', { anonymous: true, json: account });
  assert.equal(registered.status, 201, registered.body);
  const read = (password: string) =>
    program.send('GET', '/api/v1/notes', {
      anonymous: true,
      headers: { Authorization: basic(account.email, password) },
    });
  for (let time = 0; time < 5; time += 1) assert.equal((await read(account.password)).status, 200);
  const statuses: number[] = [];
  for (let guess = 0; guess < 5; guess += 1) statuses.push((await read(`guess ${guess}`)).status);
  assert.deepEqual(statuses, [401, 401, 401, 429, 429]);
  const right = await read(account.password);
  assert.equal(right.status, 429, 'a right guess is told from a wrong one by nothing');
  assert.equal(right.headers['ratelimit-policy'], '"login";q=3;w=900');
});

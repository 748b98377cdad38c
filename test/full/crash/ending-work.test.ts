/** Work that ends every process that begins it is given up at the fourth start, with words, and the program stays up. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startsMax } from '../../../src/model/starts-max.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/ending.config.ts', import.meta.url));

/** The first process takes `send`, and its work ends it and those after it. @returns the one that stays */
async function surviveDeaths(
  context: TestContext,
  send: (server: ServerProcess, json: { readonly name: string }) => Promise<void>,
) {
  const folder = temporaryFolder();
  // The work ends the process when the file is there: the answer has come by then.
  const file = join(folder, 'end');
  const start = () =>
    spawnServer({
      config,
      folder: join(folder, 'data'),
      env: { COMITY_LOG_LEVEL: 'warn', COMITY_EGRESS_ALLOW: '127.0.0.0/8' },
    });
  let program = await start();
  context.after(() => program.kill());
  await send(program, { name: file });
  writeFileSync(file, '');
  await program.ended;
  // A process may end before it is ready.
  for (let deaths = 1; deaths < startsMax; deaths += 1) await start().then(({ ended }) => ended, ignore);
  program = await start();
  return program;
}

function ignore(): void {
  // It ended.
}

test('an operation is given up after it ended three processes', async (context) => {
  let location = '';
  const server = await surviveDeaths(context, async (first, json) => {
    const headers = { Prefer: 'respond-async' };
    const accepted = await first.send('POST', '/api/v1/hooked', { json, headers });
    assert.equal(accepted.status, 202, accepted.body);
    location = String(accepted.headers.location);
  });
  const read = async () => (await server.send('GET', location)).json();
  await until(async () => (await read()).status !== 'pending');
  const { status, outcome } = await read();
  const { code, error } = outcome as { readonly code: string; readonly error: string };
  assert.deepEqual([status, code], ['failed', 'operation_given_up']);
  const words = /the program ended 3 times while it carried out the request/;
  assert.match(error, words);
  assert.match(server.stdout() + server.stderr(), words);
});

test('a delivery whose body a function makes is given up after it ended three processes', async (context) => {
  const path = '/api/v1/deliveries?limit=10';
  const server = await surviveDeaths(context, async (first, json) => {
    const sign = { email: 'ada@example.test', password: 'correct horse battery staple' };
    const user = { email: sign.email, scopes: ['read', 'write', 'webhooks'] };
    const { id } = (await first.send('POST', '/api/v1/users', { json: user })).json();
    const { password } = sign;
    await first.send('POST', `/api/v1/users/${id}/password`, { json: { password } });
    const { token } = (await first.send('POST', '/api/v1/auth/login', { json: sign })).json();
    const headers = { Authorization: `Bearer ${token}` };
    const endpoint = { url: 'http://127.0.0.1:8123/', events: ['shown.created'], scheme: 'plain' };
    const made = await first.send('POST', '/api/v1/endpoints', { json: endpoint, headers });
    assert.equal(made.status, 201, made.body);
    writeFileSync(json.name, '');
    const minimal = { Prefer: 'return=minimal' };
    await first.send('POST', '/api/v1/shown', { json, headers: minimal }).catch(ignore);
  });
  type Delivery = { readonly status: string; readonly lastError: string | null };
  const read = async () => (await server.send('GET', path)).json().items as Delivery[];
  await until(async () => (await read()).some(({ status }) => status !== 'pending'));
  assert.deepEqual(
    (await read()).map(({ status, lastError }) => [status, lastError]),
    [['not_delivered', 'given_up']],
  );
});

test('a message of a subscriber is given up after it ended three processes', async (context) => {
  const server = await surviveDeaths(context, async (first, json) => {
    assert.equal((await first.send('POST', '/api/v1/things', { json })).status, 201);
  });
  const path = '/api/v1/received?sender=subscriber:ending&limit=10';
  type Message = { readonly status: string; readonly lastError: string | null };
  const read = async () => (await server.send('GET', path)).json().items as Message[];
  await until(async () => (await read()).some(({ status }) => status !== 'pending'));
  assert.deepEqual(
    (await read()).map(({ status, lastError }) => [status, lastError]),
    [['failed', 'given-up']],
  );
});

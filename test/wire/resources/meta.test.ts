/** `/meta` and `/meta/settings` (§4.21) over the running program. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Client, openClient, register } from '../../harness/account-client.ts';
import { adminKey } from '../../harness/exchange.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, shopConfig, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { eventually } from '../../harness/until.ts';
import { firstPair } from '../server/certificates.ts';

let program: RunningServer;
let client: Client;

before(async () => {
  program = await startServer({ env: { COMITY_LIST_LIMIT_MAX: '500' } });
  client = openClient(program.port);
});

after(async () => {
  client?.close();
  await program?.stop();
});

type Setting = { name: string; value: unknown; default: unknown; source: string; secret: boolean };

test('says what the program is: version, start, store and processes that differ', async () => {
  const { status, body } = await program.send('GET', '/api/v1/meta');
  assert.equal(status, 200);
  const { version, startedAt, store, tls, differences } = JSON.parse(body);
  assert.equal(tls, null);
  assert.match(version, /^\d+\.\d+\.\d+/);
  assert.ok(Date.parse(startedAt) <= Date.now());
  if (process.env.COMITY_TEST_STORE === 'postgres')
    assert.deepEqual(store, { engine: 'postgresql', bytes: null });
  else assert.ok(store.engine === 'sqlite' && store.bytes > 0);
  assert.deepEqual(differences, []);
});

test('says when the certificate of the TLS port ends', async (context) => {
  const folder = temporaryFolder();
  const [certificate, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(certificate, firstPair.cert);
  writeFileSync(key, firstPair.key);
  const env = { COMITY_TLS_CERT: certificate, COMITY_TLS_KEY: key, COMITY_TLS_PORT: '0' };
  const secure = await startServer({ env });
  context.after(() => secure.stop());
  const { tls } = (await secure.send('GET', '/api/v1/meta', { expect: 200 })).json();
  assert.deepEqual(tls, { notAfter: '2126-10-29T00:26:25.000Z' });
});

test('lists settings with defaults and sources, and no secret', async () => {
  const { body } = await program.send('GET', '/api/v1/meta/settings');
  const { items } = JSON.parse(body) as { items: Setting[] };
  const of = (name: string) => items.find((each) => each.name === name);
  assert.ok(!body.includes(adminKey));
  const { value, default: fallback, source } = of('listLimitMax') ?? {};
  assert.deepEqual([value, fallback, source], [500, 1000, 'environment']);
  assert.equal(of('listLimitDefault')?.source, 'default');
  const secret = of('adminKey');
  assert.deepEqual([secret?.value, secret?.secret, secret?.source], [null, true, 'environment']);
  for (const { secret, value } of items) assert.ok(!secret || value === null);
});

test('shows the program to administrators alone', async () => {
  const { token } = await register(client, 'ada@meta.example', 'correct horse battery staple');
  for (const path of ['/api/v1/meta', '/api/v1/meta/settings', '/api/v1/meta/connections']) {
    assert.equal((await client.ask('GET', path)).status, 401);
    const headers = { Authorization: `Bearer ${token}` };
    assert.equal((await client.ask('GET', path, { headers })).status, 403);
  }
});

test('tells of another process of the store that was started with other settings', async (t) => {
  const database = await databaseOfProgram(shopConfig);
  const shared = { COMITY_DATABASE_URL: database.url, COMITY_SECRET_KEY: 'ab'.repeat(32) };
  const start = (reads: string) => startServer({ env: { ...shared, COMITY_RATE_LIMIT_READS: reads } });
  const first = await start('6000');
  const second = await start('100');
  if ('after' in t) t.after(() => Promise.all([first.stop(), second.stop()]));
  const [difference] = await eventually(async () => {
    const { differences } = JSON.parse((await second.send('GET', '/api/v1/meta')).body);
    return differences.length > 0 ? (differences as { what: string; noticedAt: string }[]) : undefined;
  }, 'the other settings are noticed');
  assert.equal(difference?.what, 'other settings that must agree');
  assert.ok(Date.parse(difference?.noticedAt ?? '') <= Date.now());
});

test('tells what the program did to administrators alone', async () => {
  const { token } = await register(client, 'grace@meta.example', 'correct horse battery staple');
  const headers = { Authorization: `Bearer ${token}` };
  assert.equal((await client.ask('GET', '/api/v1/meta/activity', { headers })).status, 403);
  for (const query of ['?x=1', '?x']) {
    const refused = await program.send('GET', `/api/v1/meta/activity${query}`);
    assert.deepEqual([refused.status, refused.json().code], [400, 'query_parameter_invalid'], query);
  }
  const { status, body } = await program.send('GET', '/api/v1/meta/activity');
  assert.equal(status, 200);
  const { hour, day } = JSON.parse(body) as Record<
    string,
    { from: string; requests: number[]; clientErrors: number[]; writes: number[] }
  >;
  const sum = (counts: readonly number[] = []) => counts.reduce((all, each) => all + each, 0);
  assert.equal(hour?.requests.length, 60);
  assert.equal(day?.requests.length, 96);
  assert.ok(Date.parse(hour?.from ?? '') > Date.now() - 61 * 60_000);
  assert.ok(sum(hour?.requests) > 1 && sum(hour?.clientErrors) >= 1 && sum(hour?.writes) >= 1, body);
  assert.equal(sum(day?.requests), sum(hour?.requests));
});

/**
 * What an endpoint is sent after its owner lost access (§6): nothing, from the instant of the change, in the process that made it and in
 * every other, neither new events nor old ones that are sent again.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Delivery } from '../../../src/model/delivery.ts';
import { send } from '../../harness/exchange.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, shopConfig, startServer } from '../../harness/running-server.ts';
import { attempted, items, localEgress, type Pair, startPair, stopPair } from './program-with-receiver.ts';

const base = '/api/v1';
const password = 'correct horse battery';

async function adminSends(
  program: RunningServer,
  method: string,
  path: string,
  json: object,
): Promise<string> {
  const answer = await program.send(method, `${base}${path}`, { json });
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.body}`);
  return answer.body === '' ? '' : String(answer.json().id);
}

/** An account of a tenant, and an endpoint that it made. */
async function ownerWithEndpoint({ program, receiver }: Pair, name: string, tenant: string) {
  const email = `${name}@shop.example`;
  const user = await adminSends(program, 'POST', '/users', {
    ...{ email, tenant, scopes: ['read', 'write', 'webhooks'] },
  });
  await adminSends(program, 'POST', `/users/${user}/password`, { password });
  const login = await program.send('POST', `${base}/auth/login`, {
    anonymous: true,
    json: { email, password },
  });
  const made = await send(program.port, 'POST', `${base}/endpoints`, {
    headers: { Authorization: `Bearer ${login.json().token}` },
    anonymous: true,
    json: { url: `${receiver.url}/ok/${name}`, events: ['order.*'] },
  });
  assert.equal(made.status, 201, made.body);
  receiver.trust(String(made.json().secret));
  return { user, endpoint: String(made.json().id) };
}

async function post(program: RunningServer, tenant: string): Promise<string> {
  return adminSends(program, 'POST', '/events', { type: 'order.made', data: { object: {} }, tenant });
}

async function deliveries(program: RunningServer, event: string): Promise<readonly Delivery[]> {
  return items<Delivery>(program, `${base}/deliveries?eventId=${event}`);
}

async function losesAccess(pair: Pair, other: RunningServer): Promise<void> {
  const { program } = pair;
  for (const [name, change] of [
    ['moved', { tenant: 'south' }],
    ['disabled', { disabled: true }],
    ['limited', { scopes: ['write'] }],
  ] as const) {
    const tenant = `north-${name}`;
    const { user, endpoint } = await ownerWithEndpoint(pair, name, tenant);
    const before = await post(other, tenant);
    const { delivery } = await attempted(program, before, endpoint);
    assert.equal(delivery.status, 'delivered');
    await adminSends(program, 'PATCH', `/users/${user}`, change);
    const events = await Promise.all([post(other, tenant), post(program, tenant)]);
    for (const event of events) assert.deepEqual(await deliveries(program, event), [], name);
    for (const asked of [program, other]) {
      const resent = await asked.send('POST', `${base}/deliveries/${delivery.id}/resend`);
      assert.equal(resent.status, 409, resent.body);
      assert.equal(resent.json().code, 'endpoint_unavailable');
    }
  }
}

test('sends nothing to the endpoint of an owner who lost access, from that instant on', async () => {
  const pair = await startPair();
  try {
    await losesAccess(pair, pair.program);
  } finally {
    await stopPair(pair);
  }
});

test('sends nothing either from another process on the same database', async () => {
  const database = await databaseOfProgram(shopConfig);
  after(() => database.dispose());
  const COMITY_SECRET_KEY = '3f'.repeat(32);
  const env = { COMITY_DATABASE_URL: database.url, COMITY_SECRET_KEY, ...localEgress };
  const pair = await startPair({ env });
  const other = await startServer({ env });
  try {
    await losesAccess(pair, other);
  } finally {
    await other.stop();
    await stopPair(pair);
  }
});

test('takes only https URLs of endpoints where the setting requires them', async () => {
  const pair = await startPair({ env: { COMITY_WEBHOOK_HTTPS_REQUIRED: 'on' } });
  try {
    const create = (url: string) =>
      pair.program.send('POST', `${base}/endpoints`, { json: { url, events: ['*'] } });
    const refused = await create('http://hooks.example/');
    assert.equal(refused.status, 422);
    assert.match(refused.body, /must be https/);
    assert.equal((await create('https://hooks.example/')).status, 201);
  } finally {
    await stopPair(pair);
  }
});

/** The consumers' portal (§5.10): its links, its sessions, and the webhooks of one tenant that a session reaches. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Delivery } from '../../../src/model/delivery.ts';
import type { Endpoint } from '../../../src/model/endpoint.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, shopConfig, startServer } from '../../harness/running-server.ts';
import { eventually } from '../../harness/until.ts';
import { servedPaths } from '../../openapi/fixture.ts';
import { localEgress, startPair, stopPair } from '../webhooks/program-with-receiver.ts';
import { askWith, base, exchangeLink, makeLink, openPortal } from './portal-client.ts';

const pair = await startPair({ env: { COMITY_PORTAL_LINK_SECONDS_MAX: '7200' } });
const { program, receiver } = pair;
after(() => stopPair(pair));

const secretForm = /^whsec_/;

async function post(on: RunningServer, tenant: string, type = 'invoice.paid'): Promise<string> {
  const posted = await on.send('POST', `${base}/events`, {
    json: { type, tenant, data: { object: { tenant } } },
  });
  assert.equal(posted.status, 202, posted.body);
  return String(posted.json().id);
}

function itemsOf<T>(answer: {
  readonly status: number;
  readonly body: string;
  json(): Record<string, unknown>;
}): readonly T[] {
  assert.equal(answer.status, 200, answer.body);
  return answer.json().items as readonly T[];
}

async function makeFor(tenant: string, path: string): Promise<Endpoint> {
  const made = await program.send('POST', `${base}/endpoints`, {
    json: { url: receiver.url + path, events: ['*'], tenant, headers: { 'X-Route': 'a' } },
  });
  assert.equal(made.status, 201, made.body);
  return made.json() as unknown as Endpoint;
}

test('makes a link for an administrator, whose token is in the fragment alone and shown once', async () => {
  const made = await program.send('POST', `${base}/portal-links`, { json: { tenant: 'acme' } });
  assert.equal(made.status, 201, made.body);
  assert.equal(made.headers['cache-control'], 'no-store');
  const { url, ...link } = made.json() as Record<string, string>;
  assert.match(String(url), new RegExp(`^${program.url}/portal#pl_[A-Za-z0-9_-]{43}$`));
  assert.equal(Date.parse(String(link.expiresAt)) - Date.parse(String(link.createdAt)), 3_600_000);
  assert.equal(made.headers.location, `${base}/portal-links/${link.id}`);
  const read = await program.send('GET', `${base}/portal-links/${link.id}`);
  assert.deepEqual(read.json(), link);
  const listed = await program.send('GET', `${base}/portal-links?tenant=acme`);
  assert.ok(!listed.body.includes('pl_'));
  const again = { json: { tenant: 'twice' }, headers: { 'Idempotency-Key': '"one-link"' } };
  const [one, two] = [
    await program.send('POST', `${base}/portal-links`, again),
    await program.send('POST', `${base}/portal-links`, again),
  ];
  assert.deepEqual(one.json(), two.json());
});

test('refuses links to all but administrators, and lifetimes and tenants beyond their bounds', async () => {
  const key = await program.send('POST', `${base}/keys`, {
    json: { name: 'hooks', kind: 'secret', scopes: ['read', 'write', 'webhooks'] },
  });
  const asked = { json: { tenant: 'acme' }, anonymous: true };
  const headers = { 'X-API-Key': String(key.json().key) };
  for (const [method, path] of [
    ['POST', 'portal-links'],
    ['GET', 'portal-links'],
  ] as const) {
    assert.equal((await program.send(method, `${base}/${path}`, { ...asked, headers })).status, 403);
    assert.equal((await program.send(method, `${base}/${path}`, asked)).status, 401);
  }
  const missing = await program.send('POST', `${base}/portal-links`, { json: {} });
  assert.equal(missing.status, 400, missing.body);
  for (const [json, pointer] of [
    [{ tenant: '' }, '/tenant'],
    [{ tenant: 'x'.repeat(201) }, '/tenant'],
    [{ tenant: 'acme', expiresIn: 0 }, '/expiresIn'],
    [{ tenant: 'acme', expiresIn: 7201 }, '/expiresIn'],
    [{ tenant: 'acme', expiresIn: 1.5 }, '/expiresIn'],
    [{ tenant: 'acme', until: 1 }, '/until'],
  ] as const) {
    const refused = await program.send('POST', `${base}/portal-links`, { json });
    assert.equal(refused.status, 422, refused.body);
    assert.equal((refused.json().errors as readonly { pointer: string }[])[0]?.pointer, pointer);
  }
  const longest = await makeLink(program, 'x'.repeat(200), { expiresIn: 7200 });
  assert.ok(Date.parse(longest.expiresAt) > Date.now());
});

test('opens one session for one link, however many exchange it at once', async () => {
  const link = await makeLink(program, 'acme');
  const opened = await Promise.all(Array.from({ length: 8 }, () => exchangeLink(program, link.token)));
  assert.deepEqual(opened.map(({ status }) => status).sort(), [200, ...Array.from({ length: 7 }, () => 401)]);
  const session = opened.find(({ status }) => status === 200);
  assert.match(String(session?.json().token), /^ps_[A-Za-z0-9_-]{43}$/);
  assert.deepEqual([session?.json().tenant, session?.json().expiresAt], ['acme', link.expiresAt]);
  assert.equal(session?.headers['set-cookie'], undefined);
  assert.equal((await exchangeLink(program, link.token)).status, 401);
  const used = await program.send('GET', `${base}/portal-links/${link.id}`);
  assert.ok(Date.parse(String(used.json().usedAt)) > 0);
});

test('refuses a link or a token that is altered, of the other kind, revoked or over', async () => {
  const { link, token, ask } = await openPortal(program, 'acme');
  const fresh = await makeLink(program, 'acme');
  const altered = (text: string) => text.slice(0, -1) + (text.endsWith('A') ? 'B' : 'A');
  for (const bad of [
    token,
    altered(fresh.token),
    'pl_',
    fresh.token.slice(0, -1),
    `ps_${fresh.token.slice(3)}`,
  ]) {
    assert.equal((await exchangeLink(program, bad)).status, 401, bad);
  }
  for (const bad of [fresh.token, altered(token), 'ps_', `pl_${token.slice(3)}`, `${token}x`]) {
    const refused = await askWith(program, bad, 'GET', 'endpoints');
    assert.equal(refused.status, 401, bad);
    assert.match(String(refused.headers['www-authenticate']), /error="invalid_token"/);
  }
  assert.equal((await ask('GET', 'endpoints')).status, 200);
  assert.equal((await program.send('DELETE', `${base}/portal-links/${link.id}`)).status, 204);
  assert.equal((await ask('GET', 'endpoints')).status, 401);
  await program.send('DELETE', `${base}/portal-links/${fresh.id}`);
  assert.equal((await exchangeLink(program, fresh.token)).status, 401);
  const short = await openPortal(program, 'acme', { expiresIn: 1 });
  await eventually(
    async () => ((await short.ask('GET', 'endpoints')).status === 401 ? true : undefined),
    'the session did not end',
  );
});

test('ends with the key or the account that made the link', async () => {
  const key = await program.send('POST', `${base}/keys`, {
    json: { name: 'backend', kind: 'secret', scopes: ['read', 'write', 'webhooks', 'admin'] },
  });
  const { key: text, id } = key.json() as Record<string, string>;
  const { ask, link } = await openPortal(program, 'acme', { key: String(text) });
  const unused = await makeLink(program, 'acme', { key: String(text) });
  assert.equal((await program.send('GET', `${base}/portal-links/${link.id}`)).json().madeBy, id);
  assert.equal((await ask('GET', 'endpoints')).status, 200);
  assert.equal((await program.send('DELETE', `${base}/keys/${id}`)).status, 204);
  assert.equal((await ask('GET', 'endpoints')).status, 401);
  assert.equal((await exchangeLink(program, unused.token)).status, 401);
});

test('creates, changes, tests, rotates and deletes endpoints of its tenant, which get its events', async () => {
  const { ask } = await openPortal(program, 'umbrella');
  const made = await ask('POST', 'endpoints', { url: `${receiver.url}/umbrella`, events: ['invoice.*'] });
  assert.equal(made.status, 201, made.body);
  const { id, secret, tenant } = made.json() as Record<string, string>;
  assert.equal(tenant, 'umbrella');
  assert.match(String(secret), secretForm);
  receiver.trust(String(secret));
  const path = `endpoints/${id}`;
  const [own, other] = [await post(program, 'umbrella'), await post(program, 'acme')];
  const delivery = await eventually(async () => {
    const [found] = itemsOf<Delivery>(await ask('GET', `deliveries?eventId=${own}`));
    return found?.status === 'delivered' ? found : undefined;
  }, 'the event of the tenant was not delivered');
  assert.deepEqual(itemsOf(await ask('GET', `deliveries?eventId=${other}`)), []);
  assert.equal(itemsOf(await ask('GET', `deliveries/${delivery.id}/attempts`)).length, 1);
  assert.equal((await ask('POST', `deliveries/${delivery.id}/resend`)).status, 202);
  assert.equal((await ask('POST', `${path}/test`, { type: 'endpoint.test' })).status, 202);
  const rotated = await ask('POST', `${path}/rotate-secret`, { overlapSeconds: 60 });
  assert.match(String(rotated.json().secret), secretForm);
  const since = new Date(Date.now() - 60_000).toISOString();
  const recovery = await ask('POST', `${path}/recover`, { since, dryRun: true });
  assert.equal(recovery.status, 202, recovery.body);
  assert.equal((await ask('GET', String(recovery.headers.location))).status, 200);
  const read = await ask('GET', path);
  const patched = await ask(
    'PATCH',
    path,
    { description: 'Ours' },
    { 'If-Match': String(read.headers.etag) },
  );
  assert.equal(patched.status, 200, patched.body);
  assert.equal((await ask('PATCH', path, { url: `${receiver.url}/elsewhere` })).status, 200);
  assert.ok(itemsOf<{ type: string }>(await ask('GET', 'event-types')).length > 0);
  assert.equal((await ask('DELETE', path)).status, 204);
});

test('shows the endpoints of its tenant, also those that an administrator made, and no other', async () => {
  const [ours, theirs] = [await makeFor('initech', '/initech'), await makeFor('hooli', '/hooli')];
  const { ask } = await openPortal(program, 'initech');
  const own = await ask('POST', 'endpoints', { url: `${receiver.url}/own`, events: ['*'] });
  const listed = itemsOf<Endpoint>(await ask('GET', 'endpoints'));
  assert.deepEqual(listed.map(({ id }) => id).sort(), [ours.id, String(own.json().id)].sort());
  for (const [event, tenant] of [
    [await post(program, 'initech'), 'initech'],
    [await post(program, 'hooli'), 'hooli'],
  ] as const) {
    const seen = await eventually(async () => {
      const all = itemsOf<Delivery>(await program.send('GET', `${base}/deliveries?eventId=${event}`));
      return all.length > 0 ? all : undefined;
    }, 'no delivery');
    const shown = itemsOf<Delivery>(await ask('GET', `deliveries?eventId=${event}`));
    assert.equal(shown.length, tenant === 'initech' ? seen.length : 0);
    for (const { id } of tenant === 'hooli' ? seen : []) {
      for (const [method, path] of [
        ['GET', `deliveries/${id}`],
        ['GET', `deliveries/${id}/attempts`],
        ['POST', `deliveries/${id}/resend`],
      ] as const) {
        assert.equal((await ask(method, path)).status, 404, `${method} ${path}`);
      }
    }
  }
  for (const [method, rest, json] of [
    ['GET', ''],
    ['PATCH', '', { status: 'disabled' }],
    ['PUT', '', { url: receiver.url, events: ['*'] }],
    ['DELETE', ''],
    ['POST', '/test', {}],
    ['POST', '/rotate-secret', {}],
    ['POST', '/recover', { since: '2026-01-01T00:00:00Z' }],
  ] as const) {
    assert.equal((await ask(method, `endpoints/${theirs.id}${rest}`, json)).status, 404, `${method} ${rest}`);
  }
  const queried = await ask('QUERY', 'deliveries', { aggregate: { count: true } });
  assert.ok(!queried.body.includes(theirs.id));
  const whole = await ask('QUERY', 'deliveries', { filter: { endpointId: theirs.id } });
  assert.deepEqual(itemsOf(whole), []);
  for (const [method, json] of [
    ['POST', { url: receiver.url, events: ['*'], tenant: 'hooli' }],
    ['PATCH', { tenant: 'hooli' }],
  ] as const) {
    const path = method === 'POST' ? 'endpoints' : `endpoints/${own.json().id}`;
    assert.equal((await ask(method, path, json)).status, 422);
  }
});

test('keeps the rights of an administrator out of the hands of the tenant', async () => {
  const ours = await makeFor('soylent', '/soylent');
  const { ask } = await openPortal(program, 'soylent');
  const read = await ask('GET', `endpoints/${ours.id}`);
  assert.equal(read.headers.allow, 'GET, HEAD, OPTIONS, PATCH');
  const own = await ask('POST', 'endpoints', { url: `${receiver.url}/own`, events: ['*'] });
  const ownRead = await ask('GET', `endpoints/${own.json().id}`);
  assert.deepEqual([own.status, ownRead.headers.allow], [201, undefined]);
  const byRoot = await program.send('GET', `/api/v1/endpoints/${ours.id}`);
  assert.equal(byRoot.headers.allow, undefined);
  const moved = await ask('PATCH', `endpoints/${ours.id}`, { url: `${receiver.url}/away` });
  assert.equal(moved.status, 403, moved.body);
  for (const fields of [
    { scheme: 'plain' },
    { scheme: 'timestamped', mode: 'sandbox' },
    { signatures: ['v1'] },
    { headers: { 'X-Route': 'b' } },
    { headers: { 'X-Route': '********', 'X-More': 'c' } },
    { headers: null },
    { maxInFlight: 1 },
    { ratePerSecond: 1 },
  ]) {
    const refused = await ask('PATCH', `endpoints/${ours.id}`, fields);
    assert.equal(refused.status, 403, `${JSON.stringify(fields)}: ${refused.body}`);
    assert.match(refused.body, /an administrator created the endpoint/);
  }
  const { url, events } = ours;
  const put = await ask('PUT', `endpoints/${ours.id}`, { url, events });
  assert.equal(put.status, 403, 'a PUT leaves the header fields out');
  assert.equal((await ask('POST', `endpoints/${ours.id}/rotate-secret`)).status, 403);
  assert.equal((await ask('DELETE', `endpoints/${ours.id}`)).status, 403);
  assert.equal((await ask('POST', 'endpoints/bulk-delete', { ids: [ours.id] })).status, 403);
  for (const fields of [{ status: 'disabled' }, { status: 'enabled', headers: { 'X-Route': '********' } }])
    assert.equal((await ask('PATCH', `endpoints/${ours.id}`, fields)).status, 200);
  assert.equal((await ask('PATCH', `endpoints/${ours.id}`, { description: 'ours' })).status, 200);
  assert.equal((await ask('POST', `endpoints/${ours.id}/test`)).status, 202);
  assert.equal(
    (await ask('POST', `endpoints/${ours.id}/recover`, { since: ours.createdAt, dryRun: true })).status,
    202,
  );
  await program.send('PATCH', `${base}/endpoints/${ours.id}`, { json: { events: ['invoice.*', 'order.*'] } });
  for (const events of [['*'], ['invoice.*', 'products.*']]) {
    assert.equal((await ask('PATCH', `endpoints/${ours.id}`, { events })).status, 403);
  }
  assert.equal((await ask('PATCH', `endpoints/${ours.id}`, { events: ['invoice.*'] })).status, 200);
  const given = await program.send('PATCH', `${base}/endpoints/${ours.id}`, { json: { tenant: 'massive' } });
  assert.equal(given.status, 200, given.body);
  assert.equal((await ask('GET', `endpoints/${ours.id}`)).status, 404);
  const massive = await openPortal(program, 'massive');
  assert.equal((await massive.ask('GET', `endpoints/${ours.id}`)).status, 200);
  const event = await post(program, 'massive');
  await eventually(async () => {
    const [found] = itemsOf<Delivery>(await massive.ask('GET', `deliveries?eventId=${event}`));
    return found === undefined ? undefined : true;
  }, 'the endpoint no longer has the rights of its creator');
  await program.send('PATCH', `${base}/endpoints/${ours.id}`, { json: { tenant: null } });
  assert.equal((await massive.ask('GET', `endpoints/${ours.id}`)).status, 404);
});

test('reaches nothing but the webhooks of its tenant', async () => {
  const { token, ask, link } = await openPortal(program, 'acme');
  const event = await post(program, 'acme');
  for (const [method, path, json] of [
    ['GET', 'products'],
    ['POST', 'products', { name: 'x' }],
    ['QUERY', 'products', {}],
    ['GET', 'events'],
    ['GET', `events/${event}`],
    ['POST', 'events', { type: 'invoice.paid', data: { object: {} } }],
    ['GET', 'users'],
    ['GET', 'keys'],
    ['POST', 'keys', { name: 'x', kind: 'secret' }],
    ['GET', 'audit'],
    ['GET', 'received'],
    ['GET', 'senders'],
    ['GET', 'mails'],
    ['GET', 'jobs'],
    ['GET', 'subscribers'],
    ['GET', 'portal-links'],
    ['POST', 'portal-links', { tenant: 'acme' }],
    ['DELETE', `portal-links/${link.id}`],
    ['GET', 'operations/op_x'],
    ['GET', 'queries/qry_x'],
    ['GET', 'auth/me'],
    ['POST', 'auth/logout', {}],
    ['POST', 'auth/password', {}],
    ['POST', 'realtime/tickets', {}],
    ['GET', '/metrics'],
    ['GET', '/openapi.json'],
  ] as const) {
    const refused = await ask(method, path, json);
    assert.equal(refused.status, 403, `${method} ${path}: ${refused.status} ${refused.body}`);
    assert.equal(refused.json().code, 'portal_session_limited');
  }
  const stream = await ask('GET', 'events', undefined, { Accept: 'text/event-stream' });
  assert.equal(stream.status, 403);
  for (const query of ['expand=endpointId', 'endpointId.tenant=hooli', 'sort=owner', 'owner=administrator']) {
    assert.equal((await ask('GET', `deliveries?${query}`)).status, 400, query);
  }
  const two = await askWith(program, token, 'GET', 'endpoints', undefined, { 'X-API-Key': 'sk_other' });
  assert.equal(two.status, 400);
  for (const path of ['endpoints', 'deliveries']) {
    const carried = await program.send('GET', `${base}/${path}?api_key=${token}`, { anonymous: true });
    assert.equal(carried.status, 401);
  }
});

test('is refused by every other operation of the OpenAPI document, or is answered as a caller without a credential', async () => {
  const { token, ask } = await openPortal(program, 'acme');
  const paths = await servedPaths(program);
  const open = /^\/api\/v1\/(?:endpoints|deliveries|recoveries|event-types)(?:\/|$)/;
  let refusals = 0;
  for (const [path, item] of Object.entries(paths)) {
    if (open.test(path)) continue;
    const target = path.replaceAll(/\{[^}]+\}/g, 'x');
    for (const method of Object.keys(item)) {
      if (!['get', 'post', 'put', 'patch', 'delete', 'query'].includes(method)) continue;
      const json = method === 'get' || method === 'delete' ? undefined : {};
      const answer = await ask(method.toUpperCase(), target, json);
      if (answer.json().code === 'portal_session_limited') refusals += 1;
      else {
        // Such as a login: the credential is in the content.
        const anonymous = await program.send(method.toUpperCase(), target, {
          anonymous: true,
          ...(json === undefined ? {} : { json }),
        });
        assert.equal(answer.status, anonymous.status, `${method} ${path}`);
        assert.ok(!answer.body.includes(token));
      }
    }
  }
  assert.ok(refusals > 60, `${refusals}`);
});

test('audits links and sessions with the principal of the tenant', async () => {
  const { link } = await openPortal(program, 'audited');
  await program.send('DELETE', `${base}/portal-links/${link.id}`);
  const entries = itemsOf<{ type: string; actor: { kind: string; id: string } }>(
    await program.send('GET', `${base}/audit?subject=${link.id}&sort=createdAt,id`),
  );
  assert.deepEqual(
    entries.map(({ type, actor }) => [type, actor.kind, actor.id]),
    [
      ['portal_link.created', 'administrator-key', 'administrator'],
      ['portal_session.opened', 'portal', 'tenant|audited'],
      ['portal_link.revoked', 'administrator-key', 'administrator'],
    ],
  );
});

test('is not there when the setting turns it off', async () => {
  const off = await startServer({ env: { COMITY_PORTAL: 'off' } });
  after(() => off.stop());
  assert.equal((await off.send('POST', `${base}/portal-links`, { json: { tenant: 'acme' } })).status, 404);
  assert.equal((await exchangeLink(off, `pl_${'A'.repeat(43)}`)).status, 404);
  assert.equal((await askWith(off, `ps_${'A'.repeat(43)}`, 'GET', 'endpoints')).status, 401);
});

test('a session that one process revokes is over in every other, and a link works once in all', async () => {
  const database = await databaseOfProgram(shopConfig);
  after(() => database.dispose());
  const env = { COMITY_DATABASE_URL: database.url, COMITY_SECRET_KEY: '3f'.repeat(32), ...localEgress };
  const [one, other] = [await startServer({ env }), await startServer({ env })];
  try {
    const link = await makeLink(one, 'acme');
    const opened = await Promise.all([one, other, one, other].map((each) => exchangeLink(each, link.token)));
    assert.equal(opened.filter(({ status }) => status === 200).length, 1);
    const token = String(opened.find(({ status }) => status === 200)?.json().token);
    for (const each of [one, other])
      assert.equal((await askWith(each, token, 'GET', 'endpoints')).status, 200);
    await one.send('DELETE', `${base}/portal-links/${link.id}`);
    for (const each of [other, one])
      assert.equal((await askWith(each, token, 'GET', 'endpoints')).status, 401);
  } finally {
    await other.stop();
    await one.stop();
  }
});

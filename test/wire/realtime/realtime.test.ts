/**
 * `realtime` on the wire (§4.13, §9): the whole program, real sockets, a client that is not ours. Each attempt comes from an address of its own, as
 * a proxy in front would tell, but where attempts are what it is about.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { test } from 'node:test';
import {
  asAdministrator,
  base,
  bearer,
  changeUser,
  login,
  makeKey,
  openClient,
  register,
  serveAccounts,
} from '../../harness/account-client.ts';
import { startServer } from '../../harness/running-server.ts';
import { type Opened, type OpenOptions, openRealtime, refusalOf } from './realtime-client.ts';

const password = 'correct horse battery staple';
const app = 'https://app.example';

const env = { COMITY_BEHIND_PROXY: 'on', COMITY_CORS_ORIGINS: app, COMITY_LOGIN_ATTEMPTS: '0' };
const { program, client } = await serveAccounts({ env });
const ada = await register(client, 'ada@shop.example', password);
const bob = await register(client, 'bob@shop.example', password);

let addresses = 0;

/** From an address that never tried before. */
function fromAnywhere(options: OpenOptions): OpenOptions {
  addresses += 1;
  const headers = { 'X-Forwarded-For': `198.51.${addresses >> 8}.${addresses & 255}`, ...options.headers };
  return { ...options, headers };
}

const open = (options: OpenOptions = {}): Promise<Opened> =>
  openRealtime(program.port, fromAnywhere(options));
const refused = (options: OpenOptions = {}) => refusalOf(program.port, fromAnywhere(options));

async function subscribed(opened: Opened, patterns: readonly string[], from?: string): Promise<void> {
  opened.say({ subscribe: patterns, ...(from === undefined ? {} : { after: from }) });
  await opened.saw((frame) => frame.subscribed?.join() === patterns.join());
}

async function make(path: string, headers: Readonly<Record<string, string>>, json: object): Promise<string> {
  const answer = await client.ask('POST', `${base}/${path}`, { headers, json });
  assert.equal(answer.status, 201, answer.body);
  return String(answer.json().id);
}

const about = (opened: Opened, id: string) => opened.saw(({ event }) => event?.data.object.id === id);
const eventsOf = (opened: Opened) =>
  opened.frames.flatMap(({ event }) => (event === undefined ? [] : [String(event.data.object.id)]));

test('brings each caller the events that it may read, and resumes after any of them', async () => {
  const adas = await open({ headers: bearer(ada.token) });
  const bobs = await open({ query: `?api_key=${(await makeKey(client, bearer(bob.token))).key}` });
  const nobodys = await open({ subprotocols: [] });
  const all = [adas, bobs, nobodys];
  for (const opened of all) await subscribed(opened, ['notes.*', 'categories.created']);
  const first = await make('categories', asAdministrator, { name: 'First' });
  const secret = await make('notes', bearer(ada.token), { text: 'for my eyes' });
  const last = await make('categories', asAdministrator, { name: 'Last' });
  for (const opened of all) await about(opened, last);
  assert.deepEqual(eventsOf(adas), [first, secret, last]);
  assert.deepEqual(eventsOf(bobs), [first, last]);
  assert.deepEqual(eventsOf(nobodys), [first, last]);
  const seen = (await about(adas, first)).event?.id ?? '';
  for (const opened of all) opened.end();

  const again = await open({ headers: bearer(ada.token) });
  await subscribed(again, ['notes.*', 'categories.created'], seen);
  await about(again, last);
  assert.deepEqual(eventsOf(again), [secret, last]);
  again.end();
});

test('closes with 1008 when the credential ends: key, session, rights and account', async () => {
  const { id, key } = await makeKey(client, bearer(ada.token));
  const session = await login(client, 'ada@shop.example', password);
  const cookie = await login(client, 'bob@shop.example', password, true);
  const byKey = await open({ headers: bearer(key) });
  const byToken = await open({ headers: bearer(session.token) });
  const byCookie = await open({ headers: { Cookie: cookie.cookie } });
  const byOther = await open({ headers: bearer(bob.token) });
  for (const opened of [byKey, byToken, byCookie, byOther]) await subscribed(opened, ['*']);
  const ended = { code: 1008, reason: 'credential ended' };

  assert.equal((await client.ask('DELETE', `${base}/keys/${id}`, { headers: asAdministrator })).status, 204);
  assert.deepEqual(await byKey.closed, ended);
  const logout = await client.ask('POST', `${base}/auth/logout`, { headers: bearer(session.token) });
  assert.equal(logout.status, 204);
  assert.deepEqual(await byToken.closed, ended);
  await changeUser(client, bob.userId, { roles: ['editor'] });
  assert.deepEqual(await byOther.closed, ended, 'what it may read may be another');
  assert.deepEqual(await byCookie.closed, ended);
});

test('opens one WebSocket by a ticket, with the rights that the credential has then', async () => {
  const { id, key } = await makeKey(client, bearer(ada.token));
  const ticketOf = async (): Promise<string> => {
    const answer = await client.ask('POST', `${base}/realtime/tickets`, { headers: { 'X-API-Key': key } });
    assert.equal(answer.status, 200, answer.body);
    assert.equal(answer.headers['cache-control'], 'no-store');
    assert.deepEqual(Object.keys(answer.json()), ['ticket', 'expiresIn']);
    assert.equal(answer.json().expiresIn, 30);
    return String(answer.json().ticket);
  };
  const [used, beside, late] = [await ticketOf(), await ticketOf(), await ticketOf()];
  const opened = await open({ query: `?ticket=${used}`, headers: { Origin: app } });
  await subscribed(opened, ['notes.*']);
  await about(opened, await make('notes', bearer(ada.token), { text: 'mine' }));
  const again = await refused({ query: `?ticket=${used}` });
  assert.deepEqual([again.status, again.body.code], [401, 'invalid_token']);
  const two = await refused({ query: `?ticket=${beside}`, headers: bearer(key) });
  assert.deepEqual([two.status, two.body.code], [400, 'credentials_repeated']);
  assert.equal((await client.ask('DELETE', `${base}/keys/${id}`, { headers: asAdministrator })).status, 204);
  assert.equal((await opened.closed).code, 1008);
  assert.equal(
    (await refused({ query: `?ticket=${late}` })).status,
    401,
    'the key is gone, and what stands for it',
  );
  const nobodys = await client.ask('POST', `${base}/realtime/tickets`);
  assert.equal(nobodys.status, 401);
});

test('refuses pages of other origins, subprotocols and parameters that it does not know, and what is no handshake', async () => {
  const foreign = await refused({ headers: { Origin: 'https://evil.example', ...bearer(ada.token) } });
  assert.deepEqual([foreign.status, foreign.body.code], [403, 'cross_site_request']);
  const other = await refused({ subprotocols: ['graphql-ws'] });
  assert.deepEqual([other.status, other.body.code], [400, 'handshake_invalid']);
  assert.equal(other.body.error, 'Sec-WebSocket-Protocol must include comity.v1, or be absent');
  const unknown = await refused({ query: '?since=1' });
  assert.deepEqual([unknown.status, unknown.body.code], [400, 'query_parameter_invalid']);
  const bad = await refused({ headers: bearer('sk_wrong') });
  assert.equal(bad.status, 401);
  const plain = await client.ask('GET', `${base}/realtime`);
  assert.deepEqual([plain.status, plain.headers.upgrade], [426, 'websocket']);
});

test('admits a burst of attempts of an address, good or not, and says when to come back', async (t) => {
  const env = {
    COMITY_BEHIND_PROXY: 'on',
    COMITY_REALTIME_ATTEMPTS_MAX: '3',
    COMITY_REALTIME_ATTEMPT_MS: '60000',
  };
  const limited = await startServer({ env });
  t.after(() => limited.stop());
  const headers = { 'X-Forwarded-For': '203.0.113.7' };
  const wrong = { headers: { ...headers, ...bearer('sk_wrong') } };
  assert.equal((await refusalOf(limited.port, wrong)).status, 401);
  for (let count = 0; count < 2; count += 1) (await openRealtime(limited.port, { headers })).end();
  const tooSoon = await refusalOf(limited.port, { headers });
  assert.deepEqual([tooSoon.status, tooSoon.body.code], [429, 'rate_limited']);
  assert.ok(Number(tooSoon.fields['retry-after']) > 0);
  assert.equal(tooSoon.fields['ratelimit-policy'], '"realtime";q=3;w=180');
  const other = await openRealtime(limited.port, { headers: { 'X-Forwarded-For': '203.0.113.8' } });
  other.end();
});

test('counts the attempts of a principal apart from its address, and admits the reload of a page', async (t) => {
  const env = {
    COMITY_REALTIME_ATTEMPTS_MAX: '3',
    COMITY_REALTIME_ATTEMPT_MS: '60000',
    COMITY_LOGIN_ATTEMPTS: '0',
  };
  const limited = await startServer({ env });
  t.after(() => limited.stop());
  const asking = openClient(limited.port);
  t.after(() => asking.close());
  const headers = bearer((await register(asking, 'reload@shop.example', password)).token);
  for (let count = 0; count < 3; count += 1) (await openRealtime(limited.port, {})).end();
  assert.equal((await refusalOf(limited.port, {})).status, 429);
  for (let count = 0; count < 3; count += 1) (await openRealtime(limited.port, { headers })).end();
  assert.equal((await refusalOf(limited.port, { headers })).status, 429);
});

test('refuses over HTTP/2 a GET of what is a WebSocket, and names the way there', async (t) => {
  const session = connectHttp2(program.url);
  t.after(() => session.destroy());
  const stream = session.request({ ':path': `${base}/realtime` });
  const [fields] = (await once(stream, 'response')) as [Record<string, unknown>];
  assert.equal(fields[':status'], 400);
  assert.deepEqual([fields.upgrade, fields.connection], [undefined, undefined]);
  let body = '';
  for await (const chunk of stream.setEncoding('utf8')) body += chunk;
  assert.deepEqual(JSON.parse(body), {
    error: 'over HTTP/2 a WebSocket requires CONNECT with :protocol websocket (RFC 8441)',
    code: 'handshake_invalid',
  });
});

for (const [version, option] of [
  ['1.1', 'Connection: close\r\n'],
  ['1.0', ''],
] as const) {
  test(`closes the connection after 426 to a client of HTTP/${version} that wants no other answer`, async () => {
    const socket = connect(program.port, '127.0.0.1');
    socket.write(`GET ${base}/realtime HTTP/${version}\r\nHost: a\r\n${option}\r\n`);
    let answer = '';
    for await (const chunk of socket.setEncoding('latin1')) answer += chunk;
    assert.match(answer, /^HTTP\/1\.1 426 /);
    assert.match(answer, /\r\nConnection: Upgrade, close\r\n/);
  });
}

// The last test of this file, as it ends the program.
test('ends every WebSocket with 1001 when the program stops', async () => {
  const opened = await open({ headers: bearer(ada.token) });
  await subscribed(opened, ['*']);
  const stopped = program.stop();
  assert.equal((await opened.closed).code, 1001);
  await stopped;
});

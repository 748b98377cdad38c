/**
 * Many changes of one row at once, over a connection each: all of them are made, one after the other, and none is lost. Run on
 * either store, as all of test/wire.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Answer, adminKey, type RequestOptions } from '../../harness/exchange.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { eventually, until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('../fixtures/busy.config.ts', import.meta.url));
const base = '/api/v1';
/** Clients of one row at a time. */
const many = roundsOf(250, 1000);
/** Times at once that a password is hashed, which takes 60 ms of a core each. */
const hashed = roundsOf(10, 50);
const patienceMs = 120_000;
const patchType = { 'Content-Type': 'application/json-patch+json' };

const unlimited = { COMITY_RATE_LIMIT_WRITES: '0', COMITY_RATE_LIMIT_READS: '0' };

const program = await serverOfFile({
  config,
  env: {
    ...unlimited,
    COMITY_LOGIN_ATTEMPTS: '0',
    COMITY_EGRESS_ALLOW: '127.0.0.0/8',
    // As long as a busy machine may take: what happens in the end of that time has tests of its own.
    COMITY_CHANGE_WAIT_MS: '100000',
  },
});

type Asked = RequestOptions & { readonly method?: string; readonly path: string };

/** All at once, each on a connection of its own. */
function atOnce(count: number, asked: (index: number) => Asked): Promise<readonly Answer[]> {
  return Promise.all(
    Array.from({ length: count }, (_, index) => {
      const { method = 'POST', path, ...options } = asked(index);
      return program.send(method, path, options);
    }),
  );
}

function assertAll(answers: readonly Answer[], status: number): void {
  const counted = new Map<number, number>();
  for (const answer of answers) counted.set(answer.status, (counted.get(answer.status) ?? 0) + 1);
  const other = answers.find((answer) => answer.status !== status);
  assert.deepEqual([...counted], [[status, answers.length]], other?.body ?? 'all');
}

async function makeTally(): Promise<string> {
  const made = await program.send('POST', `${base}/tallies`, { json: { marks: [] } });
  assert.equal(made.status, 201, made.body);
  return `${base}/tallies/${String(made.json().id)}`;
}

const addMark = (path: string, index: number, headers = {}): Asked => ({
  method: 'PATCH',
  path,
  headers: { ...patchType, ...headers },
  body: JSON.stringify([{ op: 'add', path: '/marks/-', value: `m${index}` }]),
});

async function marksOf(path: string): Promise<readonly string[]> {
  return (await program.send('GET', path)).json().marks as string[];
}

async function makeEndpoint(members = {}): Promise<string> {
  const json = { url: 'http://127.0.0.1:45999/', events: ['nothing.*'], ...members };
  const made = await program.send('POST', `${base}/endpoints`, { json });
  assert.equal(made.status, 201, made.body);
  return `${base}/endpoints/${String(made.json().id)}`;
}

test('makes all patches of one row that come at once', async () => {
  const path = await makeTally();
  assertAll(await atOnce(many, (index) => addMark(path, index)), 200);
  const marks = await marksOf(path);
  assert.deepEqual([marks.length, new Set(marks).size], [many, many]);
});

test('answers changes of a busy row that are refused, or change nothing, from what is committed', async () => {
  const send = (json: Record<string, unknown>, path = '', method = 'POST') =>
    program.send(method, `${base}/slots${path}`, { json });
  assert.equal((await send({ name: 'taken', count: 0 })).status, 201);
  const made = await send({ name: 'busy', count: 0 });
  const path = `/${String(made.json().id)}`;
  const kinds = [
    { json: (index: number) => ({ count: index }), status: 200 },
    { json: () => ({ name: 'taken' }), status: 409 },
    { json: () => ({ name: 'busy' }), status: 200 },
    { json: () => ({ count: -1 }), status: 422 },
  ];
  const answers = await Promise.all(
    Array.from({ length: 400 }, (_, index) => {
      const kind = kinds[index % kinds.length] ?? kinds[0];
      return send(kind?.json(index) ?? {}, path, 'PATCH');
    }),
  );
  const tags = new Set<string>();
  for (const [index, { status, headers, body }] of answers.entries()) {
    assert.equal(status, kinds[index % kinds.length]?.status, body);
    if (status !== 200) continue;
    assert.match(String(headers.etag), /^"[1-9]\d*"$/);
    if (index % kinds.length === 0) tags.add(String(headers.etag));
  }
  assert.equal(tags.size, 100);
});

test('deletes a busy row once, and answers what comes after it with 404', async () => {
  const path = await makeTally();
  const answers = await atOnce(many, (index) =>
    index % 10 === 5 ? { method: 'DELETE', path } : addMark(path, index),
  );
  const deleted = answers.filter((_, index) => index % 10 === 5).map(({ status }) => status);
  assert.equal(deleted.filter((status) => status === 204).length, 1);
  assert.ok(
    deleted.every((status) => status === 204 || status === 404),
    deleted.join(),
  );
  assert.ok(answers.every(({ status }) => [200, 204, 404].includes(status)));
  assert.equal((await program.send('GET', path)).status, 404);
});

test('carries out all asynchronous patches of one row', async () => {
  const path = await makeTally();
  const accepted = await atOnce(many, (index) => addMark(path, index, { Prefer: 'respond-async' }));
  assertAll(accepted, 202);
  const ended: Answer[] = [];
  for (const { headers } of accepted) ended.push(await endOf(String(headers.location)));
  assertAll(ended, 303);
  assert.equal(new Set(await marksOf(path)).size, many);
});

test('decides requests with If-Match at once, however many wait for the row', async () => {
  const path = await makeTally();
  const tag = String((await program.send('GET', path)).headers.etag);
  const [patched, conditional] = await Promise.all([
    atOnce(many, (index) => addMark(path, index)),
    atOnce(100, (index) => addMark(path, many + index, { 'If-Match': tag })),
  ]);
  assertAll(patched, 200);
  const made = conditional.filter(({ status }) => status === 200).length;
  assert.ok(made <= 1, `${made} changes were made of one version`);
  assert.equal(conditional.filter(({ status }) => status === 412).length, 100 - made);
  assert.equal((await marksOf(path)).length, many + made);
});

/** Of a document of a megabyte few changes fit into one transaction, so most clients still wait when the first is answered. */
test('leaves out the changes of clients that left while they waited', async () => {
  const path = await makeTally();
  const long = { title: 'x'.repeat(1_000_000) };
  assert.equal((await program.send('PATCH', path, { json: long })).status, 200);
  let answered = 0;
  const sockets = Array.from({ length: 100 }, (_, index) => {
    const body = String(addMark(path, many + index).body);
    const socket = connect(program.port, '127.0.0.1');
    socket.once('data', () => {
      answered += 1;
    });
    socket.write(
      `PATCH ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${adminKey}\r\n` +
        `Content-Type: application/json-patch+json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    return socket;
  });
  await until(() => answered > 0, 'one is answered');
  // A client that only ends its side may still wait for its response (RFC 9112 §9.6).
  for (const socket of sockets) socket.resetAndDestroy();
  assertAll(await atOnce(1, () => addMark(path, 0)), 200);
  const made = (await marksOf(path)).length - 1;
  assert.ok(made >= answered && made < sockets.length, `${made} of ${sockets.length} were made`);
});

test('rotates one key 200 times at once', async () => {
  const json = { name: 'busy', kind: 'secret', scopes: ['read'] };
  const made = await program.send('POST', `${base}/keys`, { json });
  assert.equal(made.status, 201, made.body);
  const path = `${base}/keys/${String(made.json().id)}`;
  const rotated = await atOnce(200, () => ({ path: `${path}/rotate`, json: {} }));
  assertAll(rotated, 200);
  const texts = new Set(rotated.map((answer) => answer.json().key));
  assert.equal(texts.size, 200);
});

test('rotates the secret of one endpoint 100 times at once', async () => {
  const path = await makeEndpoint();
  const rotated = await atOnce(100, () => ({ path: `${path}/rotate-secret`, json: {} }));
  assertAll(rotated, 200);
  assert.equal(new Set(rotated.map((answer) => answer.json().secret)).size, 100);
});

test('changes one endpoint 200 times at once', async () => {
  const path = await makeEndpoint();
  const changed = await atOnce(200, (index) => ({
    method: 'PATCH',
    path,
    json: { description: `change ${index}` },
    headers: { 'Content-Type': 'application/merge-patch+json' },
  }));
  assertAll(changed, 200);
});

test('resends one delivery 100 times at once', async () => {
  await makeEndpoint({ events: ['busy.resent'] });
  const posted = await program.send('POST', `${base}/events`, {
    json: { type: 'busy.resent', data: { object: {} } },
  });
  assert.equal(posted.status, 202, posted.body);
  const list = `${base}/deliveries?eventId=${String(posted.json().id)}`;
  const delivery = await eventually(async () => {
    const items = (await program.send('GET', list)).json().items as readonly { readonly id: string }[];
    return items[0];
  });
  const path = `${base}/deliveries/${delivery.id}/resend`;
  assertAll(await atOnce(100, () => ({ path, json: {} })), 202);
});

test('posts 240 events while 60 endpoints are made and 60 are changed', async () => {
  const changed = await Promise.all(Array.from({ length: 10 }, () => makeEndpoint()));
  const [made, patched, posted] = await Promise.all([
    atOnce(60, (index) => ({
      path: `${base}/endpoints`,
      json: { url: `http://127.0.0.1:45999/${index}`, events: ['nothing.*'] },
    })),
    atOnce(60, (index) => ({
      method: 'PATCH',
      path: String(changed[index % changed.length]),
      json: { description: `change ${index}` },
      headers: { 'Content-Type': 'application/merge-patch+json' },
    })),
    atOnce(240, (index) => ({
      path: `${base}/events`,
      json: { type: 'busy.posted', data: { object: { index } } },
    })),
  ]);
  assertAll(made, 201);
  assertAll(patched, 200);
  assertAll(posted, 202);
});

test('changes one account 200 times, sets its password and logs in many times at once', async () => {
  const email = 'busy@example.com';
  const password = 'correct horse battery staple';
  const registered = await program.send('POST', `${base}/auth/register`, {
    json: { email, password },
    anonymous: true,
  });
  assert.equal(registered.status, 201, registered.body);
  const { user } = registered.json() as { readonly user: { readonly id: string } };
  const path = `${base}/users/${user.id}`;
  const [patched, logins] = await Promise.all([
    atOnce(200, (index) => ({
      method: 'PATCH',
      path,
      json: { name: `name ${index}` },
      headers: { 'Content-Type': 'application/merge-patch+json' },
    })),
    atOnce(hashed, () => ({ path: `${base}/auth/login`, json: { email, password }, anonymous: true })),
  ]);
  assertAll(patched, 200);
  assertAll(logins, 200);
  assertAll(await atOnce(hashed, () => ({ path: `${path}/password`, json: { password } })), 204);
});

test('logs an account out everywhere many times while as many of its sessions are refreshed', async () => {
  const email = 'leaving@example.com';
  const password = 'correct horse battery staple';
  const json = { email, password };
  assertAll(await atOnce(1, () => ({ path: `${base}/auth/register`, json, anonymous: true })), 201);
  const logins = await atOnce(2 * hashed, () => ({ path: `${base}/auth/login`, json, anonymous: true }));
  assertAll(logins, 200);
  const [ended, refreshed] = await Promise.all([
    atOnce(hashed, (index) => ({
      path: `${base}/auth/logout`,
      json: { everywhere: true },
      anonymous: true,
      headers: { Authorization: `Bearer ${String(logins[index]?.json().token)}` },
    })),
    atOnce(hashed, (index) => ({
      path: `${base}/auth/refresh`,
      json: { refreshToken: String(logins[hashed + index]?.json().refreshToken) },
      anonymous: true,
    })),
  ]);
  // A request after the end of its session gets 401, and none gets 503.
  for (const { status, body } of ended) assert.ok(status === 204 || status === 401, body);
  for (const { status, body } of refreshed) assert.ok(status === 200 || status === 401, body);
});

test('rotates the secret of one sender 50 times at once', async () => {
  const rotated = await atOnce(50, () => ({ path: `${base}/senders/bank/rotate-secret`, json: {} }));
  assertAll(rotated, 200);
});

/** The final answer about an operation: 303 where it succeeded. */
function endOf(path: string): Promise<Answer> {
  return eventually(
    async () => {
      const answer = await program.send('GET', path);
      return answer.status === 200 && answer.json().status === 'pending' ? undefined : answer;
    },
    `the end of ${path}`,
    patienceMs,
  );
}

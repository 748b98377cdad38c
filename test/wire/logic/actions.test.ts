/** Actions over the wire, on both stores: the conduct of any resource, one transaction, and every kind of input and output. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { type Answer, adminKey, type RequestOptions } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { linesWith, serverOfFile } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';
import { statusesOf } from '../../openapi/statuses.ts';
import { watched } from './fixtures/actions.config.ts';

const config = fileURLToPath(new URL('./fixtures/actions.config.ts', import.meta.url));
const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
const typed = { 'Content-Type': 'application/json' };
const failed: Expectation = [500, 'internal'];

describeOnEachStore('actions', async (engine) => {
  const cors = { COMITY_CORS_ORIGINS: 'https://app.example' };
  const server = await serverOfFile({ config, engine, env: cors });
  /** On a busy machine any action may take as long as this one allows. */
  const impatient = await serverOfFile({ config, engine, env: { COMITY_ACTION_TIMEOUT_MS: '500' } });
  const send = (method: string, path: string, expect?: Expectation, options: RequestOptions = {}) =>
    server.send(method, path, { ...options, expect });
  const post = (path: string, json: unknown, expect?: Expectation, headers = {}): Promise<Answer> =>
    send('POST', path, expect, { json, headers });
  const accountOf = async (email: string, roles: readonly string[]): Promise<string> => {
    const account = { email, password: 'correct horse battery' };
    const { id } = (await post('auth/register', account, 201)).json().user;
    const headers = { 'Content-Type': 'application/merge-patch+json' };
    await send('PATCH', `users/${id}`, 200, { json: { roles }, headers });
    return (await post('auth/login', account, 200)).json().token;
  };
  const ticket = async (title: string, as?: string): Promise<string> =>
    String((await send('POST', 'tickets', 201, { json: { title }, as })).json().id);
  const eventsOf = async (type: string): Promise<number> =>
    (await server.list(`events?type=${type}&limit=1000`)).length;
  /** The end of an operation that was accepted. */
  const ended = async ({ headers }: Answer): Promise<Answer> => {
    for (;;) {
      const operation = await send('GET', String(headers.location));
      if (operation.status !== 200 || operation.json().status !== 'pending') return operation;
    }
  };
  /** Of a user without a role, and of an agent. */
  const user = await accountOf('user@example.com', []);
  const agent = await accountOf('agent@example.com', ['agent']);

  test('write other documents and events in one transaction', async () => {
    const [from, into] = [await ticket('from'), await ticket('into')];
    for (const text of ['one', 'two']) await post('comments', { ticketId: from, text });
    const fields = { 'content-type': 'application/json', 'cache-control': 'no-store' };
    const json = { moved: 2, note: 'merged' };
    await post(`tickets/${from}/merge`, { into }, { status: 200, json, fields });
    assert.equal((await send('GET', `tickets/${from}`)).json().status, 'solved');
    assert.equal((await server.list(`comments?ticketId=${into}`)).length, 2);
    assert.equal(await eventsOf('tickets.merged'), 1);
  });

  test('refuse in their own words, and write nothing', async () => {
    const id = await ticket('alone');
    const errors = [{ pointer: '/into', message: 'the same' }];
    const refusal = { error: 'the same', code: 'same_ticket', errors };
    await post(`tickets/${id}/merge`, { into: id }, { status: 422, json: refusal });
    await post(`tickets/${id}/merge`, { into: 'x' }, 200);
    const fields = { 'content-type': 'application/problem+json' };
    const closed = { status: 409, code: 'ticket_closed', fields };
    await post(`tickets/${id}/merge`, { into: 'x' }, closed, { Accept: 'application/problem+json' });
  });

  test('take JSON, forms and multipart, and say what is wrong with them', async () => {
    const merge = async (body: string, headers: Record<string, string>, expect: Expectation) =>
      send('POST', `tickets/${await ticket('formed')}/merge`, expect, { body, headers });
    await merge('into=x&note=hello', form, { status: 200, json: { moved: 0, note: 'hello' } });
    const part = '--b\r\nContent-Disposition: form-data; name="into"\r\n\r\nx\r\n--b--\r\n';
    const multipart = { 'Content-Type': 'multipart/form-data; boundary=b' };
    await merge(part, multipart, { status: 200, json: { moved: 0, note: 'merged' } });
    await merge('{}', typed, [400, 'field_missing']);
    await merge('{"into":"x","unheard":1}', typed, [422, 'validation_failed']);
    await merge('{', typed, 400);
    const fields = { 'accept-post': /multipart/ };
    await merge('into', { 'Content-Type': 'text/plain' }, { status: 415, fields });
    await send('POST', `tickets/${await ticket('x')}/merge`, [400, 'content_missing']);
  });

  test('have the conduct of a resource: 401, 403, 404, 405, 406, OPTIONS, CORS', async () => {
    const path = `tickets/${await ticket('guarded')}/merge`;
    const json = { into: 'x' };
    const challenged = { status: 401, fields: { 'www-authenticate': /./ } };
    await send('POST', path, challenged, { anonymous: true, json });
    // Neither the owner nor an agent.
    await send('POST', path, 403, { json, as: user });
    await post('tickets/none/merge', json, 404);
    const fields = { allow: 'POST, OPTIONS' };
    await send('GET', path, { status: 405, fields });
    await post(path, json, 406, { Accept: 'image/png' });
    await send('OPTIONS', path, { status: 204, fields }, { anonymous: true });
    const crossed = await post(path, json, undefined, { Origin: 'https://app.example' });
    assert.equal(crossed.headers['access-control-allow-origin'], 'https://app.example');
    const reader = { name: 'reader', kind: 'secret', scopes: ['read'] };
    const { key } = (await send('POST', 'keys', 201, { json: reader, as: agent })).json();
    // Without the scope write.
    await send('POST', path, 403, { json, as: key });
  });

  test('have no representation for If-Match to name', async () => {
    const [id, into] = [await ticket('conditional'), await ticket('other')];
    for (const condition of ['*', '"1"'])
      await post(`tickets/${id}/merge`, { into }, 412, { 'If-Match': condition });
    assert.equal((await send('GET', `tickets/${id}`)).json().status, 'open');
    await post(`tickets/${id}/merge`, { into }, 200, { 'If-None-Match': '*' });
  });

  test('judge by the rule of the action: owner, role, public, function', async () => {
    const path = `tickets/${await ticket('mine', user)}`;
    const fields = { 'content-type': 'text/plain; charset=utf-8' };
    await send('GET', `${path}/title`, { status: 200, body: 'mine', fields }, { as: user });
    await send('GET', `${path}/title`, 403, { as: agent });
    const assigned = { status: 200, members: { to: 'some one' } };
    await send('PUT', `${path}/assignments/some%20one`, assigned, { as: agent });
    await send('PUT', `${path}/assignments/x`, 403, { as: user });
    await send('PUT', 'tickets/none/assignments/x', 403, { as: user });
    await send('PUT', 'tickets/none/assignments/x', 404, { as: agent });
    await send('GET', 'ping', 200, { anonymous: true });
    const json = { text: 'loud' };
    await send('QUERY', 'ping', { status: 200, body: 'LOUD' }, { json });
    await send('QUERY', 'ping', 401, { json, anonymous: true });
  });

  test('take the input of GET and DELETE from the query string', async () => {
    await send('GET', 'ping?n=3&tags=a&tags=b', { status: 200, json: { pong: 3, tags: ['a', 'b'] } });
    await send('GET', 'ping?n=three', { status: 400, code: 'query_parameter_invalid', error: /^n / });
    await send('GET', 'ping?unheard=1', 400);
    const id = await ticket('forgotten');
    await send('DELETE', `tickets/${id}/forget`, { status: 200, json: { forgot: id } });
    await send('HEAD', 'ping', { status: 200, body: '' });
  });

  for (const [method, path, policy] of [
    ['GET', 'page', 'sandbox'],
    ['POST', 'drawing', 'sandbox'],
    ['GET', 'trusted', "default-src 'self'"],
    ['POST', 'bytes', undefined],
  ] as const) {
    test(`answer ${path} with the Content-Security-Policy ${policy}`, async () => {
      const fields = { 'content-security-policy': policy, 'x-content-type-options': 'nosniff' };
      await send(method, path, { status: 200, fields });
    });
  }

  test('answer with nothing, octets, a stream, a redirect', async () => {
    await send('POST', 'quiet', 204);
    const name = /filename="_.png"; filename\*=UTF-8''%C3%A4/;
    const octets = { 'content-type': 'image/png', 'content-length': '3', 'content-disposition': name };
    await send('POST', 'bytes', { status: 200, fields: octets });
    await ticket('streamed');
    const fields = { 'content-type': 'text/csv; charset=utf-8' };
    const stream = await send('GET', 'tickets/export?status=open&limit=2', { status: 200, fields });
    assert.equal(stream.body.split('\n').length, 4);
    await send('GET', 'tickets/export', 406, { headers: { Accept: 'application/json' } });
    await send('HEAD', 'tickets/export', 200);
    await send('GET', 'long', 200);
    for (const [method, path, status, location] of [
      ['GET', 'go', 303, '/docs'],
      ['GET', 'move', 308, 'https://example.com/a?b=c'],
      ['POST', 'done', 303, '/api/v1/tickets'],
      ['POST', 'repeat', 307, '/api/v1/done'],
    ] as const) {
      await send(method, path, { status, fields: { location }, body: '' });
    }
  });

  test('cut a stream that fails, so that it does not look complete', async () => {
    const whole = await send('GET', 'broken').catch(() => undefined);
    // Over HTTP/2 the stream is reset, which the client of the tests takes for an end.
    if (process.env.COMITY_TEST_PROTOCOL !== 'h2c') assert.equal(whole, undefined);
    assert.match(server.stderr(), /the stream of the action GET \/broken failed/);
    assert.match(server.stderr(), /the stream broke/);
  });

  test('end a stream whose client has left, and tell its handler', async () => {
    watched.seen.length = 0;
    const leaving = new AbortController();
    const headers = { Authorization: `Bearer ${adminKey}` };
    const answer = await fetch(`${server.url}/api/v1/watched`, { headers, signal: leaving.signal });
    const reader = answer.body?.getReader();
    for (let pieces = 0; pieces < 20; pieces += 1) await reader?.read();
    leaving.abort();
    await until(() => watched.seen.length === 2);
    assert.deepEqual([...watched.seen].sort(), ['aborted', 'ended']);
  });

  test('are told of a client that resets, and answer one that only closes its side', async () => {
    const lines = ['POST /api/v1/patient HTTP/1.1', 'Host: localhost', `X-API-Key: ${adminKey}`];
    const open = (): Socket => {
      const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
      socket.write(`${[...lines, 'Content-Length: 0', 'Connection: close'].join('\r\n')}\r\n\r\n`);
      return socket;
    };
    watched.seen.length = 0;
    const begun = async (): Promise<() => void> => {
      await until(() => watched.finish !== undefined);
      const { finish } = watched;
      watched.finish = undefined;
      return finish as () => void;
    };
    const closing = open();
    closing.end();
    void begun().then((finish) => finish());
    let received = '';
    for await (const octets of closing) received += String(octets);
    assert.match(received, /^HTTP\/1\.1 200 .*done/s);
    const leaving = open();
    await begun();
    leaving.resetAndDestroy();
    await until(() => watched.seen.length === 2);
    assert.deepEqual(watched.seen, ['done', 'aborted']);
  });

  test('write nothing from a stream, which begins after the commit', async () => {
    await send('POST', 'late').catch(() => undefined);
    await until(() => server.stderr().includes('the function that makes this call has ended'));
    await send('GET', 'counters/late-stream', 404);
  });

  test('write once for one Idempotency-Key, with and without content', async () => {
    const keyed = (name: string) => ({ 'Idempotency-Key': `"${name}"` });
    for (let time = 0; time < 2; time += 1) {
      await post('sums/keyed/add', { by: 2 }, { status: 200, json: { sum: 2 } }, keyed('add'));
      await send('POST', 'sums/empty/add', { status: 200, json: { sum: 1 } }, { headers: keyed('empty') });
    }
    await post('sums/keyed/add', { by: 3 }, [422, 'idempotency_key_reused'], keyed('add'));
    const { body } = await send('POST', 'bytes', 200, { headers: keyed('bytes') });
    const fields = { 'content-type': 'image/png' };
    await send('POST', 'bytes', { status: 200, body, fields }, { headers: keyed('bytes') });
  });

  test('run after the response where the client prefers it', async () => {
    const accepted = await post('sums/later/add', { by: 5 }, 202, { Prefer: 'respond-async' });
    const operation = await ended(accepted);
    assert.equal(operation.status, 303);
    await send('GET', String(operation.headers.location), { status: 200, json: { sum: 5 } });
  });

  test('that fail after a 202 name the operation, as the log does', async () => {
    const accepted = await post('strange', { text: 'throws' }, 202, { Prefer: 'respond-async' });
    const { status, id, outcome } = (await ended(accepted)).json();
    assert.equal(status, 'failed');
    assert.deepEqual(outcome, { error: 'internal error', code: 'internal', requestId: id });
    assert.match(linesWith(server.stderr(), id)[0] ?? '', /the action broke/);
  });

  test('that fail have their route in the log', async () => {
    for (const path of ['strange', `tickets/${await ticket('routed')}/broken`])
      await post(path, { text: 'throws' }, 500);
    const answered = linesWith(server.stderr(), '"kind":"answered"')
      .filter((line) => line.includes('"status":500'))
      .map((line) => JSON.parse(line).route);
    assert.ok(answered.includes('/api/v1/strange'));
    assert.ok(answered.includes('/api/v1/tickets/{id}/broken'));
    assert.ok(!answered.includes('none'));
  });

  test('run again where what they read was changed: 40 at once lose nothing', async () => {
    await Promise.all(Array.from({ length: 40 }, () => send('POST', 'sums/crowd/add', 200)));
    assert.equal((await send('GET', 'counters/crowd')).json().sum, 40);
  });

  test('are refused where the store refuses what they write', async () => {
    const [one, two] = [await ticket('one'), await ticket('two')];
    await send('POST', `tickets/${one}/steal`, 204);
    await send('POST', `tickets/${two}/steal`, [409, 'unique_taken']);
  });

  for (const [text, told, at = server] of [
    ['throws', /the action POST \/strange failed: the action broke/],
    ['never ends', /not done within 500 ms \(COMITY_ACTION_TIMEOUT_MS\)/, impatient],
    ['computes', /not done within 500 ms \(COMITY_ACTION_TIMEOUT_MS\)/, impatient],
    ['writes late', /not done within 500 ms/, impatient],
    ['nonsense', /returned what its output does not describe: \/fine/],
    ['nothing', /returned what its output does not describe: undefined/],
    ['unknown code', /unheard_of, which the codes of the action do not list/],
  ] as const) {
    test(`that do what they should not write nothing, and the log says why: ${text}`, async () => {
      const answer = await at.send('POST', 'strange', { json: { text }, expect: failed });
      assert.match(at.logOf(answer), told);
      if (text === 'throws') assert.match(at.logOf(answer), /actions\.config\.ts:\d+/);
      for (const id of [`strange-${text.replaceAll(' ', '-')}`, 'late'])
        await at.send('GET', `counters/${id}`, { expect: 404 });
    });
  }

  test('pass on refusals, and only read where the method is safe', async () => {
    const refusal = { error: 'it is locked', code: 'known' };
    await post('strange', { text: 'known code' }, { status: 423, json: refusal });
    await post('strange', { text: 'refused call' }, 404);
    const written = server.logOf(await send('GET', 'safe-write', 500));
    assert.match(written, /GET \/safe-write has a safe method and may only read, and called create/);
    await send('GET', 'counters/safe', 404);
  });

  test('are described in the OpenAPI document', async () => {
    const document = (await send('GET', '/openapi.json')).json();
    const paths: Record<string, Record<string, Described>> = document.paths;
    const merge = paths['/api/v1/tickets/{id}/merge']?.post;
    assert.equal(merge?.operationId, 'ticketsMerge');
    assert.equal(merge?.summary, 'Merge a ticket into another one');
    assert.deepEqual(merge?.tags, ['tickets']);
    assert.deepEqual(merge?.['x-action'], { name: 'merge', on: 'member' });
    const { into, note } = merge?.requestBody?.content['application/json']?.schema.properties ?? {};
    assert.deepEqual(into, { type: 'string', 'x-references': 'tickets' });
    assert.deepEqual(note, {
      ...{ type: 'string', description: 'Default: `"merged"`.' },
      ...{ 'x-default': 'merged', 'x-help': '' },
    });
    assert.deepEqual(Object.keys(merge?.requestBody?.content ?? {}), [
      'application/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
    ]);
    assert.deepEqual(Object.keys(merge?.responses ?? {}), ['200', 'default']);
    const statuses = statusesOf(document, 'post', '/api/v1/tickets/{id}/merge');
    assert.deepEqual(statuses, [200, 202, 401, 403, 404, 406, 409, 412, 413, 415, 422, 429]);
    assert.match(JSON.stringify(merge?.responses['200']), /"moved":\{"type":"integer"\}/);
    const ping = paths['/api/v1/ping'];
    assert.deepEqual(ping?.get?.parameters?.[0], {
      name: 'n',
      in: 'query',
      required: false,
      schema: { type: 'integer' },
    });
    assert.deepEqual(ping?.get?.security?.[0], {});
    assert.deepEqual(Object.keys(ping?.query?.responses['200']?.content ?? {}), ['text/plain']);
    assert.ok(paths['/api/v1/move']?.get?.responses['308']);
    assert.ok(paths['/api/v1/repeat']?.post?.responses['307']);
    assert.ok(paths['/api/v1/quiet']?.post?.responses['204']);
    assert.ok(!paths['/api/v1/quiet']?.post?.responses['200']);
  });
});

type Described = {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly 'x-action'?: { readonly name: string; readonly on: string };
  readonly parameters?: readonly unknown[];
  readonly security?: readonly unknown[];
  readonly requestBody?: {
    readonly content: Record<string, { readonly schema: { readonly properties: Record<string, unknown> } }>;
  };
  readonly responses: Record<string, { readonly content?: Record<string, unknown> }>;
};

/** Actions over the wire, on both stores: the conduct of any resource, one transaction, and every kind of input and output. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import { type Answer, adminKey } from '../../harness/exchange.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';
import { until } from '../../harness/until.ts';
import { watched } from './fixtures/actions.config.ts';

const config = fileURLToPath(new URL('./fixtures/actions.config.ts', import.meta.url));
const form = { 'Content-Type': 'application/x-www-form-urlencoded' };

for (const engine of engineNames) {
  describe(`actions on ${engine}`, () => {
    let server: RunningServer;
    /** On a busy machine any action may take as long as this one allows. */
    let impatient: RunningServer;
    /** Of a user without a role, and of an agent. */
    let user: { readonly Authorization: string };
    let agent: { readonly Authorization: string };

    const start = serversOn(engine, config);
    before(async () => {
      server = await start({ COMITY_CORS_ORIGINS: 'https://app.example' });
      impatient = await start({ COMITY_ACTION_TIMEOUT_MS: '500' });
      user = await accountOf('user@example.com', []);
      agent = await accountOf('agent@example.com', ['agent']);
    });

    const send = (
      method: string,
      path: string,
      options: Parameters<RunningServer['send']>[2] = {},
    ): Promise<Answer> => server.send(method, `/api/v1/${path}`, options);
    const post = (path: string, json: unknown, headers = {}): Promise<Answer> =>
      send('POST', path, { json, headers });
    const accountOf = async (email: string, roles: readonly string[]) => {
      const password = 'correct horse battery';
      const made = await post('auth/register', { email, password });
      const { id } = made.json().user as { id: string };
      const body = JSON.stringify({ roles });
      const headers = { 'Content-Type': 'application/merge-patch+json' };
      const changed = await send('PATCH', `users/${id}`, { body, headers });
      assert.equal(changed.status, 200);
      const { token } = (await post('auth/login', { email, password })).json();
      return { Authorization: `Bearer ${token}` };
    };
    const ticket = async (title: string, headers = {}): Promise<string> => {
      const made = await send('POST', 'tickets', { json: { title }, headers });
      assert.equal(made.status, 201);
      return String(made.json().id);
    };
    const eventsOf = async (type: string): Promise<number> =>
      ((await send('GET', `events?type=${type}&limit=1000`)).json().items as unknown[]).length;
    const logOf = (answer: Answer, at = server): string =>
      at
        .stderr()
        .split('\n')
        .filter((line) => line.includes(String(answer.json().requestId)))
        .join('\n');

    test('write other documents and events in one transaction', async () => {
      const [from, into] = [await ticket('from'), await ticket('into')];
      for (const text of ['one', 'two']) await post('comments', { ticketId: from, text });
      const merged = await post(`tickets/${from}/merge`, { into });
      assert.equal(merged.status, 200);
      assert.deepEqual(merged.json(), { moved: 2, note: 'merged' });
      assert.equal(merged.headers['content-type'], 'application/json');
      assert.equal(merged.headers['cache-control'], 'no-store');
      assert.equal((await send('GET', `tickets/${from}`)).json().status, 'solved');
      const moved = await send('GET', `comments?ticketId=${into}`);
      assert.equal((moved.json().items as unknown[]).length, 2);
      assert.equal(await eventsOf('tickets.merged'), 1);
    });

    test('refuse in their own words, and write nothing', async () => {
      const id = await ticket('alone');
      const same = await post(`tickets/${id}/merge`, { into: id });
      assert.equal(same.status, 422);
      assert.deepEqual(same.json(), {
        error: 'the same',
        code: 'same_ticket',
        errors: [{ pointer: '/into', message: 'the same' }],
      });
      assert.equal((await post(`tickets/${id}/merge`, { into: 'x' })).status, 200);
      const closed = await post(`tickets/${id}/merge`, { into: 'x' }, { Accept: 'application/problem+json' });
      assert.equal(closed.status, 409);
      assert.equal(closed.headers['content-type'], 'application/problem+json');
      assert.equal(closed.json().code, 'ticket_closed');
    });

    test('take JSON, forms and multipart, and say what is wrong with them', async () => {
      const merge = async (body: string, headers: Record<string, string>): Promise<Answer> =>
        send('POST', `tickets/${await ticket('formed')}/merge`, { body, headers });
      assert.deepEqual((await merge('into=x&note=hello', form)).json(), { moved: 0, note: 'hello' });
      const part = '--b\r\nContent-Disposition: form-data; name="into"\r\n\r\nx\r\n--b--\r\n';
      const multipart = await merge(part, { 'Content-Type': 'multipart/form-data; boundary=b' });
      assert.deepEqual(multipart.json(), { moved: 0, note: 'merged' });
      assert.equal((await merge('{}', { 'Content-Type': 'application/json' })).json().code, 'field_missing');
      const unknown = await merge('{"into":"x","unheard":1}', { 'Content-Type': 'application/json' });
      assert.deepEqual([unknown.status, unknown.json().code], [422, 'validation_failed']);
      assert.equal((await merge('{', { 'Content-Type': 'application/json' })).status, 400);
      const text = await merge('into', { 'Content-Type': 'text/plain' });
      assert.equal(text.status, 415);
      assert.match(String(text.headers['accept-post']), /multipart/);
      const missing = await send('POST', `tickets/${await ticket('x')}/merge`);
      assert.deepEqual([missing.status, missing.json().code], [400, 'content_missing']);
    });

    test('have the conduct of a resource: 401, 403, 404, 405, 406, OPTIONS, CORS', async () => {
      const id = await ticket('guarded');
      const path = `tickets/${id}/merge`;
      const anonymous = await send('POST', path, { anonymous: true, json: { into: 'x' } });
      assert.equal(anonymous.status, 401);
      assert.ok(anonymous.headers['www-authenticate']);
      assert.equal((await post(path, { into: 'x' }, user)).status, 403, 'neither the owner nor an agent');
      assert.equal((await post('tickets/none/merge', { into: 'x' })).status, 404);
      const wrong = await send('GET', path);
      assert.equal(wrong.status, 405);
      assert.equal(wrong.headers.allow, 'POST, OPTIONS');
      assert.equal((await post(path, { into: 'x' }, { Accept: 'image/png' })).status, 406);
      const options = await send('OPTIONS', path, { anonymous: true });
      assert.equal(options.status, 204);
      assert.equal(options.headers.allow, 'POST, OPTIONS');
      const crossed = await post(path, { into: 'x' }, { Origin: 'https://app.example' });
      assert.equal(crossed.headers['access-control-allow-origin'], 'https://app.example');
      const key = await post(
        'keys',
        { name: 'reader', kind: 'secret', scopes: ['read'] },
        { ...(await agent) },
      );
      const reader = { Authorization: `Bearer ${key.json().key}` };
      assert.equal((await post(path, { into: 'x' }, reader)).status, 403, 'without the scope write');
    });

    test('have no representation for If-Match to name', async () => {
      const id = await ticket('conditional');
      const into = await ticket('other');
      for (const condition of ['*', '"1"']) {
        const answer = await post(`tickets/${id}/merge`, { into }, { 'If-Match': condition });
        assert.equal(answer.status, 412, condition);
      }
      assert.equal((await send('GET', `tickets/${id}`)).json().status, 'open');
      assert.equal((await post(`tickets/${id}/merge`, { into }, { 'If-None-Match': '*' })).status, 200);
    });

    test('judge by the rule of the action: owner, role, public, function', async () => {
      const id = await ticket('mine', user);
      const title = await send('GET', `tickets/${id}/title`, { headers: user });
      assert.deepEqual([title.status, title.body], [200, 'mine']);
      assert.equal(title.headers['content-type'], 'text/plain; charset=utf-8');
      assert.equal((await send('GET', `tickets/${id}/title`, { headers: agent })).status, 403);
      const assigned = await send('PUT', `tickets/${id}/assignments/some%20one`, { headers: agent });
      assert.equal(assigned.status, 200);
      assert.equal(assigned.json().to, 'some one');
      assert.equal((await send('PUT', `tickets/${id}/assignments/x`, { headers: user })).status, 403);
      assert.equal((await send('PUT', 'tickets/none/assignments/x', { headers: user })).status, 403);
      assert.equal((await send('PUT', 'tickets/none/assignments/x', { headers: agent })).status, 404);
      assert.equal((await send('GET', 'ping', { anonymous: true })).status, 200);
      const body = '{"text":"loud"}';
      const headers = { 'Content-Type': 'application/json' };
      const asked = await send('QUERY', 'ping', { body, headers });
      assert.deepEqual([asked.status, asked.body], [200, 'LOUD']);
      assert.equal((await send('QUERY', 'ping', { body, headers, anonymous: true })).status, 401);
    });

    test('take the input of GET and DELETE from the query string', async () => {
      const got = await send('GET', 'ping?n=3&tags=a&tags=b');
      assert.deepEqual(got.json(), { pong: 3, tags: ['a', 'b'] });
      const wrong = await send('GET', 'ping?n=three');
      assert.deepEqual([wrong.status, wrong.json().code], [400, 'query_parameter_invalid']);
      assert.match(String(wrong.json().error), /^n /);
      assert.equal((await send('GET', 'ping?unheard=1')).status, 400);
      const id = await ticket('forgotten');
      const forgot = await send('DELETE', `tickets/${id}/forget`);
      assert.deepEqual([forgot.status, forgot.json()], [200, { forgot: id }]);
      const head = await send('HEAD', 'ping');
      assert.deepEqual([head.status, head.body], [200, '']);
    });

    for (const [method, path, policy] of [
      ['GET', 'page', 'sandbox'],
      ['POST', 'drawing', 'sandbox'],
      ['GET', 'trusted', "default-src 'self'"],
      ['POST', 'bytes', undefined],
    ] as const) {
      test(`answer ${path} with the Content-Security-Policy ${policy}`, async () => {
        const { status, headers } = await send(method, path);
        assert.deepEqual([status, headers['content-security-policy']], [200, policy]);
        assert.equal(headers['x-content-type-options'], 'nosniff');
      });
    }

    test('answer with nothing, octets, a stream, a redirect', async () => {
      assert.equal((await send('POST', 'quiet')).status, 204);
      const bytes = await send('POST', 'bytes');
      assert.equal(bytes.headers['content-type'], 'image/png');
      assert.equal(bytes.headers['content-length'], '3');
      assert.match(
        String(bytes.headers['content-disposition']),
        /filename="_.png"; filename\*=UTF-8''%C3%A4/,
      );
      await ticket('streamed');
      const stream = await send('GET', 'tickets/export?status=open&limit=2');
      assert.equal(stream.status, 200);
      assert.equal(stream.headers['content-type'], 'text/csv; charset=utf-8');
      assert.equal(stream.body.split('\n').length, 4);
      assert.equal(
        (await send('GET', 'tickets/export', { headers: { Accept: 'application/json' } })).status,
        406,
      );
      assert.equal((await send('HEAD', 'tickets/export')).status, 200);
      const long = await send('GET', 'long');
      assert.equal(long.status, 200);
      for (const [method, path, status, location] of [
        ['GET', 'go', 303, '/docs'],
        ['GET', 'move', 308, 'https://example.com/a?b=c'],
        ['POST', 'done', 303, '/api/v1/tickets'],
        ['POST', 'repeat', 307, '/api/v1/done'],
      ] as const) {
        const answer = await send(method, path);
        assert.deepEqual([answer.status, answer.headers.location, answer.body], [status, location, '']);
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
      const url = `${server.url}/api/v1/watched`;
      const headers = { Authorization: `Bearer ${adminKey}` };
      const answer = await fetch(url, { headers, signal: leaving.signal });
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
      assert.equal((await send('GET', 'counters/late-stream')).status, 404);
    });

    test('write once for one Idempotency-Key, with and without content', async () => {
      const add = (): Promise<Answer> => post('sums/keyed/add', { by: 2 }, { 'Idempotency-Key': '"add"' });
      const [first, second] = [await add(), await add()];
      assert.deepEqual([first.json(), second.json()], [{ sum: 2 }, { sum: 2 }]);
      const empty = (): Promise<Answer> =>
        send('POST', 'sums/empty/add', { headers: { 'Idempotency-Key': '"empty"' } });
      assert.deepEqual([(await empty()).json(), (await empty()).json()], [{ sum: 1 }, { sum: 1 }]);
      const other = await post('sums/keyed/add', { by: 3 }, { 'Idempotency-Key': '"add"' });
      assert.deepEqual([other.status, other.json().code], [422, 'idempotency_key_reused']);
      const bytes = (): Promise<Answer> =>
        send('POST', 'bytes', { headers: { 'Idempotency-Key': '"bytes"' } });
      const [made, replayed] = [await bytes(), await bytes()];
      assert.equal(replayed.headers['content-type'], 'image/png');
      assert.equal(replayed.body, made.body);
    });

    test('run after the response where the client prefers it', async () => {
      const accepted = await post('sums/later/add', { by: 5 }, { Prefer: 'respond-async' });
      assert.equal(accepted.status, 202);
      let operation: Answer;
      do operation = await server.send('GET', String(accepted.headers.location));
      while (operation.status === 200);
      assert.equal(operation.status, 303);
      const result = await server.send('GET', String(operation.headers.location));
      assert.deepEqual(result.json(), { sum: 5 });
    });

    test('that fail after a 202 name the operation, as the log does', async () => {
      const accepted = await post('strange', { text: 'throws' }, { Prefer: 'respond-async' });
      assert.equal(accepted.status, 202);
      let operation: Answer;
      do operation = await server.send('GET', String(accepted.headers.location));
      while (operation.json().status === 'pending');
      assert.equal(operation.json().status, 'failed');
      const { id, outcome } = operation.json();
      assert.deepEqual(outcome, { error: 'internal error', code: 'internal', requestId: id });
      const lines = server.stderr().split('\n');
      assert.match(lines.find((line) => line.includes(String(id))) ?? '', /the action broke/);
    });

    test('that fail have their route in the log', async () => {
      for (const path of ['strange', `tickets/${await ticket('routed')}/broken`]) {
        const answer = await post(path, { text: 'throws' });
        assert.equal(answer.status, 500);
      }
      const answered = server
        .stderr()
        .split('\n')
        .filter((line) => line.includes('"kind":"answered"') && line.includes('"status":500'))
        .map((line) => JSON.parse(line).route);
      assert.ok(answered.includes('/api/v1/strange'));
      assert.ok(answered.includes('/api/v1/tickets/{id}/broken'));
      assert.ok(!answered.includes('none'));
    });

    test('run again where what they read was changed: 40 at once lose nothing', async () => {
      const made = await Promise.all(Array.from({ length: 40 }, () => send('POST', 'sums/crowd/add')));
      assert.deepEqual(new Set(made.map(({ status }) => status)), new Set([200]));
      assert.equal((await send('GET', 'counters/crowd')).json().sum, 40);
    });

    test('are refused where the store refuses what they write', async () => {
      const [one, two] = [await ticket('one'), await ticket('two')];
      assert.equal((await send('POST', `tickets/${one}/steal`)).status, 204);
      const taken = await send('POST', `tickets/${two}/steal`);
      assert.deepEqual([taken.status, taken.json().code], [409, 'unique_taken']);
    });

    for (const [text, told, at = () => server] of [
      ['throws', /the action POST \/strange failed: the action broke/],
      ['never ends', /not done within 500 ms \(COMITY_ACTION_TIMEOUT_MS\)/, () => impatient],
      ['computes', /not done within 500 ms \(COMITY_ACTION_TIMEOUT_MS\)/, () => impatient],
      ['writes late', /not done within 500 ms/, () => impatient],
      ['nonsense', /returned what its output does not describe: \/fine/],
      ['nothing', /returned what its output does not describe: undefined/],
      ['unknown code', /unheard_of, which the codes of the action do not list/],
    ] as const) {
      test(`that do what they should not write nothing, and the log says why: ${text}`, async () => {
        const answer = await at().send('POST', '/api/v1/strange', { json: { text } });
        assert.deepEqual([answer.status, answer.json().code], [500, 'internal']);
        assert.match(logOf(answer, at()), told);
        if (text === 'throws') assert.match(logOf(answer), /actions\.config\.ts:\d+/);
        for (const id of [`strange-${text.replaceAll(' ', '-')}`, 'late'])
          assert.equal((await at().send('GET', `/api/v1/counters/${id}`)).status, 404);
      });
    }

    test('pass on refusals, and only read where the method is safe', async () => {
      const locked = await post('strange', { text: 'known code' });
      assert.deepEqual([locked.status, locked.json()], [423, { error: 'it is locked', code: 'known' }]);
      assert.equal((await post('strange', { text: 'refused call' })).status, 404);
      const written = await send('GET', 'safe-write');
      assert.equal(written.status, 500);
      assert.match(logOf(written), /GET \/safe-write has a safe method and may only read, and called create/);
      assert.equal((await send('GET', 'counters/safe')).status, 404);
    });

    test('are described in the OpenAPI document', async () => {
      const { paths } = (await server.send('GET', '/openapi.json')).json() as {
        paths: Record<string, Record<string, Described>>;
      };
      const merge = paths['/api/v1/tickets/{id}/merge']?.post;
      assert.equal(merge?.operationId, 'ticketsMerge');
      assert.equal(merge?.summary, 'Merge a ticket into another one');
      assert.deepEqual(merge?.tags, ['tickets']);
      assert.deepEqual(Object.keys(merge?.requestBody?.content ?? {}), [
        'application/json',
        'application/x-www-form-urlencoded',
        'multipart/form-data',
      ]);
      const statuses = Object.keys(merge?.responses ?? {});
      for (const status of ['200', '202', '401', '403', '404', '406', '409', '415', '422', '429'])
        assert.ok(statuses.includes(status), status);
      assert.ok(!statuses.includes('204'));
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
}

type Described = {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly unknown[];
  readonly security?: readonly unknown[];
  readonly requestBody?: { readonly content: Record<string, unknown> };
  readonly responses: Record<string, { readonly content?: Record<string, unknown> }>;
};

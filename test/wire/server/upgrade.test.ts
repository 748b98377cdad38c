/** Upgrade and CONNECT as a server without such roles answers them (§4.10 rule 9, §4.13). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Response } from '../../../src/http/message.ts';
import { countContent, echo, serve, text } from './serve.ts';

const websocket =
  'GET /realtime HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';

test('answers a request to upgrade as an ordinary one, and closes', async (t) => {
  const { open } = await serve(t, echo);
  const client = (await open()).send(websocket);
  const answer = await client.answer();
  assert.equal(answer.body, 'GET /realtime');
  assert.equal(answer.fields.get('connection'), 'close');
  assert.equal(await client.closed, 'end');
});

test('takes no octets after a declined upgrade for a request', async (t) => {
  const seen: string[] = [];
  const { open } = await serve(t, (request) => {
    seen.push(request.target);
    return text(200, 'x');
  });
  const client = (await open()).send(`${websocket}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n`);
  await client.answer();
  client.send('GET /later HTTP/1.1\r\nHost: a\r\n\r\n');
  assert.equal(await client.closed, 'end');
  assert.equal(client.received, '');
  assert.deepEqual(seen, ['/realtime']);
});

for (const together of [true, false]) {
  test(`reads the content of a declined upgrade that comes ${together ? 'with' : 'after'} its fields`, async (t) => {
    const { open } = await serve(t, countContent(100));
    const head =
      'POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n' +
      'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nContent-Length: 5\r\n\r\n';
    const client = await open();
    if (together) client.send(`${head}hello`);
    else {
      client.send(head);
      await (await open()).send('@\r\n\r\n').answer();
      client.send('hello');
    }
    assert.equal((await client.answer()).body, '5');
  });
}

for (const target of ['a:443', 'a', '/x', 'http://a/']) {
  test(`answers 405 with Allow to CONNECT ${target}`, async (t) => {
    const { open, observed } = await serve(t, echo);
    const client = (await open()).send(
      `CONNECT ${target} HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n`,
    );
    const answer = await client.answer();
    assert.equal(answer.status, 405);
    assert.equal(answer.fields.get('allow'), 'GET, HEAD, POST, OPTIONS');
    assert.equal(answer.fields.get('connection'), 'close');
    assert.equal(JSON.parse(answer.body).code, 'method_not_allowed');
    assert.equal(await client.closed, 'end');
    assert.equal(client.received, '');
    assert.equal(
      observed.some((fact) => fact.kind === 'answered'),
      false,
    );
  });
}

test('answers CONNECT with content, and in another version', async (t) => {
  const { open } = await serve(t, echo);
  const withContent = (await open()).send('CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhe');
  assert.equal((await withContent.answer()).status, 405);
  assert.equal(await withContent.closed, 'end');
  const other = (await open()).send('CONNECT a:1 HTTP/2.0\r\nHost: a\r\n\r\n');
  assert.equal((await other.answer()).status, 505);
});

test('answers CONNECT after the answers that are owed before it', async (t) => {
  const first = Promise.withResolvers<Response>();
  const { open } = await serve(t, (request) =>
    request.target === '/first' ? first.promise : text(200, 'x'),
  );
  const client = (await open()).send(
    'GET /first HTTP/1.1\r\nHost: a\r\n\r\nCONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n',
  );
  await (await open()).send('GET /other HTTP/1.1\r\nHost: a\r\n\r\n').answer();
  first.resolve(text(200, 'first'));
  const answer = await client.answer();
  assert.equal(answer.body, 'first');
  assert.equal((await client.answer()).status, 405);
  assert.equal(await client.closed, 'end');
});

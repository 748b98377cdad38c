/** The best-known complaint of receivers: a body parser replaced the raw body. It is told what happened, and what to do. */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import {
  type HeaderSource,
  memoryStore,
  type RawBody,
  type ReceiveOptions,
  receive,
  signTimestamped,
} from '../../../src/webhooks/index.ts';

const secrets = ['whsec_c2VjcmV0IG9mIHRoZSBlbmRwb2ludCBlcF8x'];
const octets = new TextEncoder();

/** As a sender writes it, with spaces. */
const body = '{ "id": "evt_1", "type": "products.created", "price": 1.0 }';
const parsed: unknown = JSON.parse(body);

async function signed(content: string | Uint8Array = body): Promise<Record<string, string>> {
  return {
    'service-signature': await signTimestamped({ body: content, secrets }),
    'content-length': String(typeof content === 'string' ? octets.encode(content).length : content.length),
  };
}

function ask(rawBody: RawBody, headers: HeaderSource, options: Partial<ReceiveOptions> = {}) {
  return receive(rawBody, headers, { sender: 'timestamped', secrets, store: memoryStore(), ...options });
}

async function hintFor(rawBody: RawBody, headers: HeaderSource): Promise<string | undefined> {
  const answer = await ask(rawBody, headers);
  if (answer.outcome !== 'refused') return assert.fail(answer.outcome);
  assert.equal(answer.reason, 'no-match');
  assert.ok(!answer.body.includes(answer.hint ?? 'hint'), 'the sender is not told');
  return answer.hint;
}

/** A request of node:http with this content, without a server. */
function nodeRequest(chunks: readonly Uint8Array[]): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  for (const chunk of chunks) request.push(chunk);
  request.push(null);
  return request;
}

function fetchRequest(content: string | ReadableStream): Request {
  return new Request('https://shop.example/webhooks', {
    method: 'POST',
    body: content,
    duplex: 'half',
  } as RequestInit);
}

describe('a raw body is', () => {
  test('octets, a text of their UTF-8, or a request that nothing has read', async () => {
    const headers = await signed();
    const bytes = octets.encode(body);
    const halves = [bytes.subarray(0, 7), bytes.subarray(7)];
    const bodies = [
      ...[bytes, Buffer.from(bytes), bytes.buffer, body, fetchRequest(body), nodeRequest(halves)],
      fetchRequest(ReadableStream.from(halves)),
    ];
    for (const each of bodies) assert.equal((await ask(each, headers)).outcome, 'accepted');
  });

  test('octets that are no UTF-8, and none at all', async () => {
    for (const content of [Uint8Array.of(0xff, 0, 0xfe), new Uint8Array()]) {
      assert.equal((await ask(content, await signed(content))).outcome, 'accepted');
    }
    const { 'content-length': _, ...headers } = await signed('');
    for (const absent of [undefined, null, '']) {
      assert.equal((await ask(absent, headers)).outcome, 'accepted');
      assert.equal((await ask(absent, { ...headers, 'content-length': '0' })).outcome, 'accepted');
    }
    for (const request of [fetchRequest(''), new Request('https://shop.example', { method: 'POST' })]) {
      assert.equal((await ask(request, headers)).outcome, 'accepted');
    }
  });

  test('at most as long as it may be', async () => {
    const bodyBytesMax = octets.encode(body).length;
    const headers = await signed();
    for (const [max, status] of [
      [bodyBytesMax, 204],
      [bodyBytesMax - 1, 413],
    ] as const) {
      const bytes = octets.encode(body);
      for (const each of [body, bytes, fetchRequest(body), nodeRequest([bytes])]) {
        const answer = await ask(each, headers, { bodyBytesMax: max });
        assert.equal(answer.status, status);
        if (answer.outcome === 'refused') assert.match(answer.body, /"code":"content_too_large"/);
      }
    }
    const request = nodeRequest([octets.encode(body), octets.encode('more')]);
    await ask(request, headers, { bodyBytesMax: 1 });
    assert.equal(request.destroyed, false, 'an answer can still be sent');
  });
});

describe('what a body parser left is told with the remedy', () => {
  const remedy = /body parser.*Express: .*express\.json\(\).*Fastify: .*parseAs.*Hono/;

  test('where it is what was parsed', async () => {
    const headers = await signed();
    const parsedBodies = [parsed, {}, [], 0, true, new Map(), () => body];
    for (const each of parsedBodies) await assert.rejects(ask(each as RawBody, headers), remedy);
    await assert.rejects(ask(parsed as RawBody, headers), { name: 'TypeError' });
  });

  test('where there is none although the request had one', async () => {
    for (const absent of [undefined, null]) {
      await assert.rejects(ask(absent, await signed()), remedy);
      await assert.rejects(ask(absent, { 'transfer-encoding': 'chunked' }), remedy);
    }
    // Over HTTP/2 neither field need be there, and whoever sends nothing must not make an error.
    const { 'content-length': _, ...headers } = await signed();
    assert.match((await hintFor(undefined, headers)) ?? '', /receive\(\) got no body/);
  });

  test('where the request was read before', async () => {
    const headers = await signed();
    const request = fetchRequest(body);
    await request.json();
    await assert.rejects(ask(request, headers), /body was already read.*Hono/);
    const nodes = nodeRequest([octets.encode(body)]);
    await nodes.toArray();
    await assert.rejects(ask(nodes, headers), /body was already read.*Express/);
    const text = nodeRequest([octets.encode(body)]).setEncoding('utf8');
    await assert.rejects(ask(text, headers), /setEncoding/);
  });
});

describe('a hint says', () => {
  test('that what was parsed was written anew, by the length', async () => {
    const headers = await signed();
    const again = JSON.stringify(parsed);
    for (const each of [again, octets.encode(again)]) {
      assert.match(
        (await hintFor(each, headers)) ?? '',
        /has 50 octets, but the Content-Length of the request is 59: a body parser parsed it/,
      );
    }
    const { 'content-length': _, ...withoutLength } = headers;
    assert.match((await hintFor(again, withoutLength)) ?? '', /as JSON\.stringify writes it/);
  });

  test('that a content coding was taken off', async () => {
    const compressed = gzipSync(body);
    const headers = { ...(await signed(compressed)), 'content-encoding': 'gzip' };
    assert.equal((await ask(compressed, headers)).outcome, 'accepted');
    assert.match((await hintFor(gunzipSync(compressed), headers)) ?? '', /inflate: false/);
  });

  test('that it is still in base64', async () => {
    for (const content of [body, `${body} `, `${body}  `]) {
      const text = Buffer.from(content).toString('base64');
      assert.match((await hintFor(text, await signed(content))) ?? '', /isBase64Encoded/);
    }
  });

  test('that octets were lost on the way to a text', async () => {
    const content = Uint8Array.of(0x22, 0xff, 0x22);
    const { 'content-length': _, ...headers } = await signed(content);
    assert.match((await hintFor(new TextDecoder().decode(content), headers)) ?? '', /U\+FFFD/);
  });

  test('nothing of a body that may be the one that was sent', async () => {
    const headers = await signed();
    const tampered = body.replace('1.0', '2.0');
    assert.equal(await hintFor(tampered, headers), undefined);
    assert.equal(await hintFor(octets.encode(tampered), headers), undefined);
    // Most senders write their JSON without spaces themselves.
    assert.equal(await hintFor('{"id":"evt_2"}', await signed('{"id":"evt_1"}')), undefined);
  });
});

test('refuses a text with lone surrogates, although the signature fits what it would be encoded to', async () => {
  const travelled = '{"id":"\ufffd"}';
  const headers = await signed(travelled);
  assert.equal((await ask(travelled, headers)).outcome, 'accepted');
  assert.match((await hintFor('{"id":"\ud800"}', headers)) ?? '', /lone surrogates/);
});

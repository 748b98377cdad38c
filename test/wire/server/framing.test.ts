/**
 * Requests that two readers could take for different requests (RFC 9112 §11), and other octets that are no request. For
 * each: the status, an error body, the end of the connection, and above all that the handler saw nothing it should not.
 *
 * What reaches the handler is judged there by the fields, as the kernel does; `judge` is the part of it that
 * matters here.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Request, Response } from '../../../src/http/message.ts';
import { problemBody, problemStatus } from '../../../src/http/problem.ts';
import type { ProblemCode } from '../../../src/http/problem-registry.ts';
import { isUnderstoodTransferCoding } from '../../../src/http/request-fields.ts';
import { parseRequestTarget } from '../../../src/http/syntax/request-target.ts';
import { isHost } from '../../../src/http/syntax/uri.ts';
import { type PortKind, portKinds, serve, text } from './serve.ts';

function judge(request: Request): Response {
  const { fields } = request;
  if (fields.hostCount !== 1 && !(fields.hostCount === 0 && request.version === '1.0'))
    return refuse('host_invalid');
  if (fields.host !== undefined && !isHost(fields.host)) return refuse('host_invalid');
  if (parseRequestTarget(request.method, request.target) === undefined) return refuse('target_invalid');
  if (fields.repeated !== undefined) return refuse('field_invalid');
  if (fields.transferEncoding !== undefined && !isUnderstoodTransferCoding(fields.transferEncoding)) {
    return refuse('transfer_coding_unknown');
  }
  if (fields.expect !== undefined && fields.expect.toLowerCase() !== '100-continue')
    return refuse('expectation_failed');
  return text(200, 'seen');
}

function refuse(code: ProblemCode): Response {
  return {
    status: problemStatus(code),
    fields: ['Content-Type', 'application/json'],
    content: problemBody({ code }),
    code,
  };
}

function overText(kind: PortKind): string {
  return kind === 'TLS' ? 'over TLS' : 'in cleartext';
}

const host = 'Host: a\r\n';
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n';

type Attempt = {
  readonly name: string;
  readonly send: string;
  readonly status: number;
  readonly code: ProblemCode;
  /** What a handler may have seen of it; nothing but refusals by default. */
  readonly seen?: readonly string[];
  /** The framing is sound, so the connection may go on. */
  readonly goesOn?: true;
  readonly message?: string;
};

const attempts: readonly Attempt[] = [
  // Two lengths
  {
    name: 'Content-Length and Transfer-Encoding',
    send: `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'Transfer-Encoding and Content-Length',
    send: `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'two different Content-Length fields',
    send: `POST / HTTP/1.1\r\n${host}Content-Length: 0\r\nContent-Length: 39\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'two equal Content-Length fields',
    send: `POST / HTTP/1.1\r\n${host}Content-Length: 0\r\nContent-Length: 0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'a list of lengths',
    send: `POST / HTTP/1.1\r\n${host}Content-Length: 0, 39\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'a signed length',
    send: `POST / HTTP/1.1\r\n${host}Content-Length: +0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'a hexadecimal length',
    send: `POST / HTTP/1.1\r\n${host}Content-Length: 0x0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'an empty length',
    send: `POST / HTTP/1.1\r\n${host}Content-Length: \r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'a length over 2^64',
    send: `POST / HTTP/1.1\r\n${host}Content-Length: 18446744073709551616\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  // Transfer codings
  {
    name: 'gzip, chunked',
    send: `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 501,
    code: 'transfer_coding_unknown',
  },
  {
    name: 'chunked, gzip',
    send: `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'chunked twice in two fields',
    send: `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'identity',
    send: `POST / HTTP/1.1\r\n${host}Transfer-Encoding: identity\r\n\r\n${smuggled}`,
    status: 501,
    code: 'transfer_coding_unknown',
  },
  {
    name: 'xchunked',
    send: `POST / HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 501,
    code: 'transfer_coding_unknown',
  },
  {
    name: 'a vertical tab before chunked',
    send: `POST / HTTP/1.1\r\n${host}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'chunked in HTTP/1.0',
    send: `POST / HTTP/1.0\r\n${host}Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
    message: 'Transfer-Encoding does not exist in HTTP/1.0',
  },
  // Field syntax
  {
    name: 'a space before the colon',
    send: `POST / HTTP/1.1\r\n${host}Content-Length : 39\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'a folded field',
    send: `POST / HTTP/1.1\r\n${host}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'a space before the first field',
    send: `GET / HTTP/1.1\r\n Transfer-Encoding: chunked\r\n${host}\r\n0\r\n\r\n`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'a field without a name',
    send: `GET / HTTP/1.1\r\n${host}: x\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'NUL in a field',
    send: `GET / HTTP/1.1\r\n${host}X-A: a\x00b\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'a bare CR in a field',
    send: `GET / HTTP/1.1\r\n${host}X-A: a\rTransfer-Encoding: chunked\r\n\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'a bare LF after a field',
    send: `GET / HTTP/1.1\nHost: a\n\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  // Chunks
  {
    name: 'a chunk size with 0x',
    send: `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'content_malformed',
    seen: ['POST /'],
  },
  {
    name: 'a chunk longer than its size',
    send: `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'content_malformed',
    seen: ['POST /'],
  },
  {
    name: 'a bare LF after a chunk size',
    send: `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n${smuggled}`,
    status: 400,
    code: 'content_malformed',
    seen: ['POST /'],
  },
  {
    name: 'endless chunk extensions',
    send: `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n3;${'x'.repeat(20_000)}\r\nabc\r\n0\r\n\r\n${smuggled}`,
    status: 413,
    code: 'content_too_large',
    seen: ['POST /'],
  },
  // Versions
  {
    name: 'HTTP/0.9 with fields and content (llhttp#877)',
    send: 'GET /x\nHost: a\r\nContent-Length: 5\r\n\r\nhello',
    status: 505,
    code: 'version_unsupported',
  },
  { name: 'HTTP/0.9', send: 'GET /\r\n\r\n', status: 505, code: 'version_unsupported' },
  {
    name: 'HTTP/2.0 in a request line',
    send: `GET / HTTP/2.0\r\n${host}\r\n${smuggled}`,
    status: 505,
    code: 'version_unsupported',
  },
  {
    name: 'HTTP/1.2',
    send: `GET / HTTP/1.2\r\n${host}\r\n${smuggled}`,
    status: 505,
    code: 'version_unsupported',
  },
  {
    name: 'the preface of HTTP/2 behind a request line of its own',
    send: 'PRI * HTTP/1.1\r\n\r\nSM\r\n\r\n',
    status: 505,
    code: 'version_unsupported',
  },
  // Methods
  {
    name: 'an unknown method',
    send: `BREW / HTTP/1.1\r\n${host}\r\n${smuggled}`,
    status: 501,
    code: 'method_unknown',
    message: 'method not implemented',
  },
  {
    name: 'a method in lower case',
    send: `get / HTTP/1.1\r\n${host}\r\n${smuggled}`,
    status: 501,
    code: 'method_unknown',
    message: 'method not implemented; methods are case-sensitive: GET',
  },
  {
    name: 'a method with more letters',
    send: `GETX / HTTP/1.1\r\n${host}\r\n${smuggled}`,
    status: 501,
    code: 'method_unknown',
  },
  {
    name: 'a method that is no token',
    send: `G@T / HTTP/1.1\r\n${host}\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  {
    name: 'the start of TLS',
    send: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    status: 400,
    code: 'message_invalid',
  },
  // Host and target
  {
    name: 'two Host fields',
    send: `GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`,
    status: 400,
    code: 'host_invalid',
    goesOn: true,
  },
  { name: 'no Host', send: 'GET / HTTP/1.1\r\n\r\n', status: 400, code: 'host_invalid', goesOn: true },
  {
    name: 'a Host with a space',
    send: 'GET / HTTP/1.1\r\nHost: a b\r\n\r\n',
    status: 400,
    code: 'host_invalid',
    goesOn: true,
  },
  {
    name: 'a second Host after two thousand fields',
    send: `GET / HTTP/1.1\r\n${host}${'A:\r\n'.repeat(2500)}Host: b\r\n\r\n`,
    status: 400,
    code: 'host_invalid',
    goesOn: true,
  },
  {
    name: 'a fragment in the target',
    send: `GET /a#b HTTP/1.1\r\n${host}\r\n`,
    status: 400,
    code: 'target_invalid',
    goesOn: true,
  },
  {
    name: 'a space in the target',
    send: `GET /a b HTTP/1.1\r\n${host}\r\n${smuggled}`,
    status: 400,
    code: 'message_invalid',
  },
  // Expectations
  {
    name: 'an unknown expectation',
    send: `GET / HTTP/1.1\r\n${host}Expect: tea\r\n\r\n`,
    status: 417,
    code: 'expectation_failed',
    goesOn: true,
  },
];

const rows = portKinds.flatMap((kind) => attempts.map((attempt) => ({ ...attempt, kind })));

for (const { name, send, status, code, seen = [], goesOn, message, kind } of rows) {
  test(`answers ${status} to ${name}${goesOn ? '' : ' and closes'}, ${overText(kind)}`, async (t) => {
    const taken: string[] = [];
    const judging = async (request: Request): Promise<Response> => {
      const judged = judge(request);
      if (judged.status !== 200) return judged;
      taken.push(`${request.method} ${request.target}`);
      const content = await request.readContent(1000);
      return content.ok ? judged : refuse(content.code);
    };
    const { open, observed } = await serve(t, judging, {}, { kind });
    const client = (await open()).send(send);
    const answer = await client.answer();
    assert.equal(answer.status, status);
    assert.equal(answer.fields.get('content-type'), 'application/json');
    assert.equal(answer.fields.get('api-version'), '1');
    assert.ok(answer.fields.has('date'));
    const body = JSON.parse(answer.body);
    assert.equal(body.code, code);
    if (message !== undefined) assert.equal(body.error, message);
    if (goesOn === true) {
      assert.equal((await client.send(`GET /next HTTP/1.1\r\n${host}\r\n`).answer()).status, 200);
      assert.deepEqual(taken, ['GET /next']);
    } else {
      assert.equal(answer.fields.get('connection'), 'close');
      client.socket.end();
      assert.equal(await client.closed, 'end');
      assert.equal(client.received, '', 'nothing after the refusal');
      assert.deepEqual(taken, seen);
    }
    assert.ok(observed.length >= 1);
  });
}

test('drops what comes after a request that asked to close, and keeps the answer whole', async (t) => {
  const seen: string[] = [];
  const answer = Promise.withResolvers<Response>();
  const { open, observed } = await serve(t, (request) => {
    seen.push(request.target);
    return answer.promise;
  });
  const client = (await open()).send(`GET /a HTTP/1.1\r\n${host}Connection: close\r\n\r\n${smuggled}`);
  // The parser has met the further octets by the time a second connection is answered.
  const other = await open();
  other.send(`GET /b HTTP/1.1\r\n${host}\r\n`);
  answer.resolve(text(200, 'whole'));
  assert.equal((await other.answer()).status, 200);
  assert.equal((await client.answer()).body, 'whole');
  assert.equal(await client.closed, 'end');
  assert.equal(client.received, '');
  assert.deepEqual(seen, ['/a', '/b']);
  assert.equal(
    observed.some((fact) => fact.kind === 'client-error'),
    false,
  );
});

test('answers a good request that is under way when garbage follows it, and closes', async (t) => {
  const answer = Promise.withResolvers<Response>();
  const { open } = await serve(t, () => answer.promise);
  const client = (await open()).send(`GET /a HTTP/1.1\r\n${host}\r\n@@@ / HTTP/1.1\r\n\r\n`);
  await (await open()).send(`@@@ / HTTP/1.1\r\n\r\n`).answer();
  answer.resolve(text(200, 'good'));
  const good = await client.answer();
  assert.equal(good.body, 'good');
  assert.equal(good.fields.get('connection'), 'close');
  assert.equal(await client.closed, 'end');
  assert.equal(client.received, '');
});

test('finds the method in lower case behind a good request in the same packet', async (t) => {
  const { open } = await serve(t, judge);
  const client = (await open()).send(`GET /a HTTP/1.1\r\n${host}\r\npost / HTTP/1.1\r\n${host}\r\n`);
  assert.equal((await client.answer()).status, 200);
  const refused = await client.answer();
  assert.equal(refused.status, 501);
  assert.match(refused.body, /case-sensitive: POST/);
});

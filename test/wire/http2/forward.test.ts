/** Requests for other servers, through the whole program (§4.10; RFC 9113 §8.1). */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { adminKey } from '../../harness/exchange.ts';
import { listen } from '../../harness/listening.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { openRaw } from '../server/raw-client.ts';
import { openSession, receive } from './http2-client.ts';

const program = await serverOfFile({
  env: { COMITY_TUNNEL: 'on', COMITY_TUNNEL_PORTS: '1-65535', COMITY_EGRESS_ALLOW: '127.0.0.0/8' },
});

function echoFraming(): Server {
  return createServer(async (incoming, outgoing) => {
    let bytes = 0;
    for await (const chunk of incoming) bytes += (chunk as Buffer).length;
    const { 'content-length': length, 'transfer-encoding': coding } = incoming.headers;
    outgoing.end(`${bytes} ${coding ?? length}`);
  });
}

for (const [what, content, lateMs, framing] of [
  ['none, ended with the header section', undefined, 0, '0'],
  ['none, ended after it', '', 0, '0'],
  ['none, ended later', '', 50, '0'],
  ['some of unknown length', 'hello', 0, 'chunked'],
  ['some that comes later', 'hello', 50, 'chunked'],
] as const) {
  test(`forwards content: ${what}`, async (t) => {
    const { url } = await listen(echoFraming(), t);
    const fields = {
      ...{ ':method': 'POST', ':path': '/', ':authority': new URL(url).host },
      'proxy-authorization': `Bearer ${adminKey}`,
    };
    const stream = openSession(t, program.port).request(fields, { endStream: content === undefined });
    const got = receive(stream);
    if (lateMs > 0) await pause(lateMs);
    if (content !== undefined) stream.end(content);
    const { status, body } = await got;
    assert.deepEqual([status, body], [200, `${content?.length ?? 0} ${framing}`]);
  });
}

test('takes content that a destination refused until its end, so that a client that reads late finds the refusal', async (t) => {
  const { url } = await listen(
    createServer((_incoming, outgoing) => outgoing.writeHead(413).end('no')),
    t,
  );
  const { host } = new URL(url);
  const client = await openRaw(program.port);
  t.after(() => client.destroy());
  client.send(
    `POST ${url}/ HTTP/1.1\r\nHost: ${host}\r\nProxy-Authorization: Bearer ${adminKey}\r\nContent-Length: 8000000\r\n\r\n`,
  );
  const { status } = await client.answer();
  assert.equal(status, 413);
  const failure = await new Promise((resolve) => client.socket.write('x'.repeat(8_000_000), resolve));
  assert.equal(failure ?? undefined, undefined);
});

/** What WebSockets leave behind (§4.13): nothing, however they end. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { EchoServer, type Protocol } from '../../realtime/websocket/echo-server.ts';
import { clientClose, clientFrame, opcodes, RawPeer } from '../../realtime/websocket/raw-peer.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const offer = ['Sec-WebSocket-Extensions', 'permessage-deflate'];

it('keeps neither memory nor timers of 1,000 WebSockets that ended', async () => {
  const server = await EchoServer.start();
  await openAndEnd(server, 100);
  const before = heapBytes();
  await openAndEnd(server, 1000);
  assert.equal(server.sockets.size, 0);
  assert.equal(server.opened, 1100);
  assert.equal(server.facts.length, 1100);
  server.facts.length = 0;
  assert.ok(heapBytes() - before < 1000 * 1024, 'less than 1 KiB for each of them');
  assert.equal(timeouts(), 0);
  await server.stop();
});

async function openAndEnd(server: EchoServer, count: number): Promise<void> {
  for (let done = 0; done < count; done += 50) {
    const all = Array.from({ length: 50 }, (_, index) => {
      return openAndEndOne(server, index < 40 ? 'HTTP/1.1' : 'HTTP/2', index % 5);
    });
    await Promise.all(all);
  }
  while (server.sockets.size > 0) await new Promise((resolve) => setImmediate(resolve));
}

/** By a Close of the client, a protocol error, its end, a reset, in the middle of a message. */
async function openAndEndOne(server: EchoServer, protocol: Protocol, how: number): Promise<void> {
  const peer = await RawPeer.open(protocol, server, offer);
  peer.write(clientFrame(opcodes.text, 'x'.repeat(2000)));
  await peer.frame();
  if (how === 0) peer.write(clientClose(1000));
  if (how === 1) peer.write(clientFrame(opcodes.text, 'x', { rsv: 1 }));
  if (how === 2) peer.end();
  if (how === 3) peer.reset();
  if (how === 4) {
    peer.write(clientFrame(opcodes.text, 'x', { fin: false }));
    peer.end();
  }
  await peer.ended;
  peer.release();
}

function heapBytes(): number {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

function timeouts(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
}

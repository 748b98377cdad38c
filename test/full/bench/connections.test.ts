/**
 * The tools that connections are measured with: what they count must be what came, and what is wrong must not be counted. And each
 * of them once against the real program; the figures of so short a time mean nothing, so none is compared.
 */
import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Ports } from '../../../bench/connections/destination.ts';
import { FrameCounter, pingOpcode } from '../../../bench/connections/frame-count.ts';
import { h2loadVersion, runH2load } from '../../../bench/connections/h2load.ts';
import {
  authorization,
  eventsPath,
  proxyAuthorization,
  realtimePath,
  startConnections,
} from '../../../bench/connections/program.ts';
import { Subscriber } from '../../../bench/connections/subscriber.ts';
import type { Opened, Posted, SubscribersQuestion } from '../../../bench/connections/subscribers.ts';
import { TunnelClient } from '../../../bench/connections/tunnel-client.ts';
import type { Octets, Setups, TunnelQuestion } from '../../../bench/connections/tunnel-clients.ts';
import type { Place } from '../../../bench/engine.ts';
import { startPart } from '../../../bench/webhooks/part.ts';
import { listen } from '../../harness/listening.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { growthOf } from '../../soak/connections/flat-memory.ts';

const unpinned = { pinned: false, words: '' };

test('counts the texts of frames however they are cut into reads', () => {
  const lengths = [0, 1, 125, 126, 300, 65_535, 65_536];
  const frames = Buffer.concat([...lengths.map((length) => frame(1, length)), frame(9, 4), frame(1, 7)]);
  for (const step of [1, 2, 7, 1000, frames.length]) {
    const counter = new FrameCounter();
    let pings = 0;
    for (let at = 0; at < frames.length; at += step) {
      const opcode = counter.take(frames, at, Math.min(frames.length, at + step));
      if (opcode === pingOpcode) pings += 1;
    }
    assert.deepEqual(
      [counter.texts, counter.textBytes, pings],
      [lengths.length + 1, 7, 1],
      `in reads of ${step}`,
    );
  }
});

test('subscribes, counts what is broadcast and answers pings', async (context) => {
  const server = createHttpServer();
  const sockets = new WebSocketServer({ server });
  const { port } = await listen(server, context);
  const ponged = new Promise<void>((resolve) => {
    sockets.on('connection', (socket: WebSocket) => {
      socket.once('pong', () => resolve());
      socket.once('message', () => {
        socket.send('{"subscribed":["*"]}');
        socket.send('one');
        socket.ping();
        socket.send('two');
      });
    });
  });
  let texts = 0;
  const subscriber = await new Promise<Subscriber>((resolve, reject) => {
    const plan = { host: '127.0.0.1', port, path: '/', fieldLines: '', subscribe: '{}' };
    const made: Subscriber = new Subscriber(plan, new Uint8Array(64), {
      onSubscribed: () => undefined,
      onTexts: (count) => {
        texts += count;
        if (texts === 2) resolve(made);
      },
      onFault: (fault) => reject(new Error(fault)),
    });
  });
  assert.equal(subscriber.textBytes, 3);
  await ponged;
  subscriber.end();
});

test('takes an answer other than 200 to CONNECT for a fault', async (context) => {
  const server = createServer((socket) => socket.end('HTTP/1.1 407 No\r\n\r\n'));
  const { port } = await listen(server, context);
  const fault = await new Promise<string>((resolve, reject) => {
    const route = { host: '127.0.0.1', port, target: 'a:1', fieldLines: '' };
    new TunnelClient(route, new Uint8Array(64), {
      onOpen: () => reject(new Error('opened')),
      onOctets: () => undefined,
      onFault: resolve,
    });
  });
  assert.match(fault, /^answered HTTP\/1\.1 407 /);
});

test('tells memory that grows from memory that wavers', () => {
  const samples = (bytesAt: (step: number) => number) =>
    Array.from({ length: 60 }, (_, step) => ({ atMs: step * 1000, bytes: bytesAt(step) }));
  const grown = growthOf(
    samples((step) => 1000 + step * 10),
    0.5,
  );
  assert.equal(Math.round(grown.bytesPerHour), 36_000);
  assert.ok(grown.lateBytes > grown.earlyBytes);
  const warmed = growthOf(
    samples((step) => Math.min(step, 20) * 100 + (step % 2)),
    0.5,
  );
  assert.ok(Math.abs(warmed.lateBytes - warmed.earlyBytes) <= 1);
});

test('finds the program answering over HTTP/2, to WebSockets and through tunnels (HTTP/2 where h2load is installed)', async (context) => {
  const folder = temporaryFolder();
  const { server, destination, tunnels, subscribers } = await startParts(folder);
  context.after(async () => {
    await Promise.all([server.stop(), destination.stop(), tunnels.stop(), subscribers.stop()]);
  });
  const { host, port } = server;
  const times = { warmupMs: 20, measuredMs: 100 };
  if (h2loadVersion() === undefined) context.diagnostic('h2load is not installed');
  else {
    const plan = { ...times, paths: ['/health/live'], connections: 2, streams: 2 };
    assert.ok((await runH2load(unpinned, folder, server, plan)).requestsPerSecond > 0);
  }

  const fieldLines = `Authorization: ${authorization}\r\n`;
  const plan = { host, port, path: realtimePath, fieldLines, subscribe: '{"subscribe":["a.b"]}' };
  await subscribers.ask<Opened>({ ask: 'open', plan, count: 20 } satisfies SubscribersQuestion);
  const content = '{"type":"a.b","data":{"object":{}}}';
  const post = { origin: `http://${host}:${port}`, path: eventsPath, authorization, content };
  const question: SubscribersQuestion = { ask: 'post', events: 5, post };
  assert.equal((await subscribers.ask<Posted>(question)).deliveries, 100);

  const ports = await destination.ask<Ports>({ ask: 'ports' });
  const proxyLines = `Proxy-Authorization: ${proxyAuthorization}\r\n`;
  const route = (to: number) => ({ host, port, target: `127.0.0.1:${to}`, fieldLines: proxyLines });
  const octets: TunnelQuestion = { ask: 'octets', route: route(ports.source), tunnels: 2, ...times };
  assert.ok((await tunnels.ask<Octets>(octets)).bytesPerSecond > 0);
  const setups: TunnelQuestion = { ask: 'setups', route: route(ports.quiet), atOnce: 4, ...times };
  assert.ok((await tunnels.ask<Setups>(setups)).perSecond > 0);
});

async function startParts(folder: string) {
  const place: Place = { store: 'sqlite', folder };
  const [server, destination, tunnels, subscribers] = await Promise.all([
    startConnections(unpinned, place),
    startPart(unpinned, 1, 'connections/destination.ts'),
    startPart(unpinned, 1, 'connections/tunnel-clients.ts'),
    startPart(unpinned, 1, 'connections/subscribers.ts'),
  ]);
  return { server, destination, tunnels, subscribers };
}

function frame(opcode: number, length: number): Buffer {
  const header =
    length < 126
      ? Buffer.from([0x80 | opcode, length])
      : length < 65_536
        ? Buffer.from([0x80 | opcode, 126, length >> 8, length & 255])
        : Buffer.from([0x80 | opcode, 127, 0, 0, 0, 0, 0, length >> 16, (length >> 8) & 255, length & 255]);
  return Buffer.concat([header, Buffer.alloc(length, 0x81)]);
}

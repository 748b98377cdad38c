/**
 * Clients of every kind, each a function that connects, does something, and is gone: well-behaved, hasty, broken and wrong ones. What they
 * are answered must be what such a client is to be answered; how they leave is up to chance, by a generator of numbers that is given.
 */
import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { WebSocket } from 'ws';
import { adminKey } from '../../harness/exchange.ts';

export type Site = {
  readonly port: number;
  /** Of the echo server. */
  readonly echoPort: number;
  /** From 0 to 1. */
  readonly random: () => number;
};
export type Visitor = (site: Site) => Promise<void>;

const authorization = `Bearer ${adminKey}`;
const proxyAuthorization = `Basic ${Buffer.from(`${adminKey}:`).toString('base64')}`;
const answerMsMax = 20_000;

/** Some requests on one kept connection. */
export const keepAlive: Visitor = async ({ port, random }) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    for (let left = 1 + Math.floor(random() * 20); left > 0; left -= 1) {
      const path = random() < 0.5 ? '/health/live' : '/api/v1/products';
      assert.equal(await statusOf(agent, port, path), 200);
    }
  } finally {
    agent.destroy();
  }
};

/** Some streams on one session, of which some are given up, and sometimes the session is cut. */
export const multiplexed: Visitor = async ({ port, random }) => {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => session.once('close', () => resolve()));
  const streams = Array.from({ length: 1 + Math.floor(random() * 20) }, () =>
    streamOf(session, random() < 0.2),
  );
  const isCut = random() < 0.2;
  if (isCut) session.destroy();
  for (const answer of await Promise.all(streams))
    if (!isCut && answer !== 'given up') assert.equal(answer, 200);
  session.close();
  await within(closed, 'a session stays open');
};

/** An event stream that is left while it is open. */
export const eventStream: Visitor = async ({ port, random }) => {
  const socket = await dial(port);
  socket.write(
    `GET /api/v1/events HTTP/1.1\r\nHost: soak\r\nAuthorization: ${authorization}\r\nAccept: text/event-stream\r\n\r\n`,
  );
  assert.match(await firstText(socket), /^HTTP\/1\.1 200 /);
  leave(socket, random);
};

/** A WebSocket that subscribes and leaves, by closing or by being cut. */
export const webSocket: Visitor = async ({ port, random }) => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/api/v1/realtime`, 'comity.v1', {
    headers: { authorization },
    perMessageDeflate: random() < 0.5,
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => undefined);
  const text = await new Promise<string>((resolve, reject) => {
    socket.once('close', (code) => reject(new Error(`closed with ${code} before it was subscribed`)));
    socket.once('open', () => socket.send('{"subscribe":["*"]}'));
    socket.once('message', (data) => resolve(String(data)));
  });
  assert.match(text, /^\{"(subscribed|event)":/);
  if (random() < 0.3) socket.terminate();
  else socket.close(1000);
  await closed;
};

/** A tunnel whose octets come back, and which ends by halves or is reset. */
export const tunnel: Visitor = async ({ port, echoPort, random }) => {
  const socket = await dial(port);
  const target = `127.0.0.1:${echoPort}`;
  const octets = Buffer.alloc(1 + Math.floor(random() * 200_000), 'octets ');
  socket.write(
    `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: ${proxyAuthorization}\r\n\r\n`,
  );
  const isEarly = random() < 0.3;
  if (isEarly) socket.write(octets);
  const head = await firstText(socket);
  assert.match(head, /^HTTP\/1\.1 200 /);
  if (random() < 0.3) {
    socket.resetAndDestroy();
    return;
  }
  const came = Buffer.byteLength(head, 'latin1') - (head.indexOf('\r\n\r\n') + 4);
  if (isEarly) socket.end();
  else socket.end(octets);
  let count = came;
  for await (const chunk of socket) count += (chunk as Buffer).length;
  assert.equal(count, octets.length);
};

/** A tunnel without a credential: refused, and the reason said. */
export const refusedTunnel: Visitor = async ({ port, echoPort }) => {
  const socket = await dial(port);
  socket.write(`CONNECT 127.0.0.1:${echoPort} HTTP/1.1\r\nHost: 127.0.0.1:${echoPort}\r\n\r\n`);
  assert.match(await firstText(socket), /^HTTP\/1\.1 407 /);
  socket.destroy();
};

const wrongOctets: readonly string[] = [
  'GET / HTTP/0.9\r\n\r\n',
  'GET / HTTP/2.0\r\nHost: a\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
  'get\u0000',
  'PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u00ff\u00ff\u00ff\u0004\u0000\u0000\u0000\u0000\u0000',
  'GET /api/v1/realtime HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\n\r\n',
  'CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n',
  'P',
];

/** What no client should send; the program answers as it likes, and the connection ends. */
export const wrong: Visitor = async ({ port, random }) => {
  const socket = await dial(port);
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.resume();
  socket.end(Buffer.from(wrongOctets[Math.floor(random() * wrongOctets.length)] ?? '', 'latin1'));
  await within(closed, 'a connection with wrong octets stays open');
};

function statusOf(agent: Agent, port: number, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest({ host: '127.0.0.1', port, path, agent }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode));
    });
    asked.once('error', reject);
    asked.end();
  });
}

/** @returns the status, undefined where none came */
function streamOf(session: ClientHttp2Session, isGivenUp: boolean): Promise<number | 'given up' | undefined> {
  return new Promise((resolve) => {
    const stream = session.request({ ':path': '/api/v1/products', accept: 'application/json' });
    let status: number | undefined;
    stream.on('error', () => undefined);
    stream.once('response', (headers) => {
      status = headers[':status'];
      if (isGivenUp) stream.close(constants.NGHTTP2_CANCEL);
    });
    stream.once('close', () => resolve(isGivenUp ? 'given up' : status));
    stream.resume();
  });
}

async function dial(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await new Promise((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  return socket;
}

/** Until the header section has come, and what came with it; paused again afterwards. */
function firstText(socket: Socket): Promise<string> {
  const text = new Promise<string>((resolve, reject) => {
    let came = '';
    const take = (chunk: Buffer): void => {
      came += chunk.toString('latin1');
      if (!came.includes('\r\n\r\n')) return;
      socket.pause();
      socket.off('data', take);
      resolve(came);
    };
    socket.on('data', take);
    socket.once('error', reject);
    socket.once('end', () => reject(new Error(`ended after ${JSON.stringify(came)}`)));
  });
  return within(text, 'no answer');
}

function leave(socket: Socket, random: () => number): void {
  if (random() < 0.5) socket.destroy();
  else socket.resetAndDestroy();
}

async function within<T>(promise: Promise<T>, complaint: string): Promise<T> {
  const bound = AbortSignal.timeout(answerMsMax);
  const late = new Promise<never>((_, reject) => {
    bound.addEventListener('abort', () => reject(new Error(complaint)), { once: true });
  });
  return await Promise.race([promise, late]);
}

/**
 * A proxy over HTTP/1.1 and HTTP/2 in the test's own process, with the real guard, dialler, key verifier and store; around it the least
 * server that does what ours does with a CONNECT.
 */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import { connect, createServer as createTcpServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import { createProxyAuthenticate } from '../../src/accounts/authenticate.ts';
import { createKeyVerifier } from '../../src/accounts/keys/key-verifier.ts';
import { createFactorRule } from '../../src/accounts/second-factor/factor-row.ts';
import { createVerifiedCredentials } from '../../src/accounts/verified-credentials.ts';
import { createDialer, type Dial } from '../../src/egress/dial.ts';
import { createEgressPolicy } from '../../src/egress/policy.ts';
import type { Lookup } from '../../src/egress/resolve.ts';
import type { Request, Response } from '../../src/http/message.ts';
import { readRequestFields } from '../../src/http/request-fields.ts';
import type { HostRules } from '../../src/model/host-rules.ts';
import type { Observation } from '../../src/observe/observation.ts';
import { createOpenConnections } from '../../src/observe/open-connections.ts';
import type { Store } from '../../src/store/store.ts';
import { createAdmission } from '../../src/tunnel/admission.ts';
import type { HttpProxy } from '../../src/tunnel/proxy-call.ts';
import { createConnect } from '../../src/tunnel/tunnel.ts';
import { plantKey } from '../accounts/keys/planted.ts';
import { listen } from '../harness/listening.ts';
import { openEmbedded } from '../harness/stores.ts';

export const adminKey = 'sk_test_0123456789abcdef0123456789';
export const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

export type RigOptions = {
  readonly settings?: Partial<typeof defaults>;
  readonly egressAllow?: string;
  readonly hosts?: readonly HostRules[];
  readonly lookup?: Lookup;
  readonly dial?: Dial;
  readonly clock?: () => number;
};

export type Rig = Awaited<ReturnType<typeof startRig>>;
export type Fact<Kind extends Observation['kind']> = Extract<Observation, { kind: Kind }>;

const defaults = {
  tunnelPorts: '1-65535',
  tunnelsMax: 10_000,
  tunnelsPerPrincipalMax: 1000,
  tunnelBytesPerDayMax: 0,
  tunnelIdleMs: 60_000,
  tunnelHalfClosedMs: 60_000,
  egressDnsMs: 1000,
  egressConnectMs: 1000,
};

export type Stand = {
  readonly store: Store;
  /** Of a principal with the scope `tunnel`. */
  readonly key: string;
};

/** What is dear to make, for all tests of a file. */
export async function openStand(): Promise<Stand> {
  const store = await openEmbedded();
  const { text: key } = await plantKey(store, { id: 'key_tunnel', scopes: ['tunnel'] });
  return { store, key };
}

/** Everything ends with the test. */
export async function startRig(context: TestContext, { store, key }: Stand, options: RigOptions = {}) {
  const settings = { ...defaults, ...options.settings };
  const facts: Observation[] = [];
  const clock = options.clock ?? Date.now;
  const cache = createVerifiedCredentials(store, clock, 1_000_000);
  context.after(() => cache.close());
  const listening: { address: string; port: number }[] = [];
  const { egressAllow = '127.0.0.0/8,::1' } = options;
  const policy = createEgressPolicy({
    egressAllow,
    egressPorts: '443',
    everyPort: true,
    ownListeners: () => listening,
  });
  const lookup = options.lookup === undefined ? {} : { lookup: options.lookup };
  const dial = options.dial ?? createDialer({ ...settings, policy, ...lookup });
  const desk = createAdmission({
    settings,
    connections: createOpenConnections(clock),
    authenticate: createProxyAuthenticate({ verifiers: verifiersOver(store, clock), cache }),
    addressOf: ({ peer }) => peer,
    hostsOf: () => options.hosts ?? [],
    observe: (fact) => facts.push(fact),
    clock,
  });
  const unused = () => assert.fail('not a part of this rig');
  const proxy = {
    connect: createConnect(desk, dial, settings),
    ...{ udp: unused, isForeign: () => false, forward: unused, drain: desk.drain, count: desk.count },
  };
  const { port } = await listen(serveHttp1(proxy), context);
  const { port: port2 } = await listen(serveHttp2(proxy), context);
  listening.push({ address: '127.0.0.1', port });
  return {
    ...{ proxy, facts, key, port, port2 },
    factsOf: <Kind extends Observation['kind']>(kind: Kind): readonly Fact<Kind>[] =>
      facts.filter((fact): fact is Fact<Kind> => fact.kind === kind),
    /** Resolves with the fact, at once when it was told already. */
    async told<Kind extends Observation['kind']>(kind: Kind): Promise<Fact<Kind>> {
      for (;;) {
        const found = facts.find((fact): fact is Fact<Kind> => fact.kind === kind);
        if (found !== undefined) return found;
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

function verifiersOver(store: Store, clock: () => number) {
  const uses = { intervalMs: 60_000, note: () => undefined };
  const verifyKey = createKeyVerifier(
    { store, clock, uses, factorRule: createFactorRule(store, 'optional') },
    { hash: () => hash('sha256', adminKey, 'buffer'), isKept: false },
  );
  return {
    key: verifyKey,
    token: (text: string) =>
      text === 'eyJ.unavailable'
        ? ({ problem: 'unavailable' } as const)
        : ({ problem: 'invalid_token' } as const),
    password: async (_user: string, password: string) =>
      password === 'too often'
        ? {
            problem: 'rate_limited' as const,
            allowance: { exceeded: true, policy: '', rate: '', remaining: '0', retryAfterSeconds: 9 },
          }
        : { problem: 'invalid_credentials' as const },
    session: () => assert.fail('the proxy knows no cookie'),
  };
}

function serveHttp1(proxy: HttpProxy): Server {
  const server = createServer();
  server.on('connect', async (incoming: IncomingMessage, socket: Socket, head: Buffer) => {
    const gone = new AbortController();
    const onGone = () => gone.abort();
    socket.on('error', onGone).once('close', onGone);
    const { url = '', rawHeaders, httpVersion } = incoming;
    const request = requestOf(url, rawHeaders, httpVersion, socket.remoteAddress ?? '');
    const reply = await proxy.connect({ request, signal: gone.signal });
    socket.off('close', onGone).off('error', onGone);
    if ('refused' in reply) {
      socket.on('error', () => undefined);
      socket.end(textOf(reply.refused));
    } else if (gone.signal.aborted) reply.abandon();
    else {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      reply.join({ duplex: socket, head, reset: () => socket.resetAndDestroy() });
    }
  });
  return server;
}

function serveHttp2(proxy: HttpProxy): Http2Server {
  const server = createHttp2Server();
  server.on('stream', async (stream: ServerHttp2Stream, headers) => {
    const gone = new AbortController();
    stream.on('error', () => gone.abort()).once('close', () => gone.abort());
    const raw = Object.entries(headers).flatMap(([name, value]) =>
      name.startsWith(':') ? [] : [name, String(value)],
    );
    const request = requestOf(headers[':authority'] ?? '', raw, '2.0', '127.0.0.1');
    const reply = await proxy.connect({ request, signal: gone.signal });
    if ('refused' in reply) {
      if (stream.destroyed) return;
      stream.respond({ ':status': reply.refused.status }, { endStream: false });
      stream.end(String(reply.refused.content));
    } else if (gone.signal.aborted) reply.abandon();
    else {
      stream.respond({ ':status': 200 });
      reply.join({ duplex: stream, head: Buffer.alloc(0), reset: () => stream.close(10) });
    }
  });
  return server;
}

function requestOf(target: string, raw: readonly string[], version: string, peer: string): Request {
  const fields = readRequestFields(raw);
  const readContent = () => assert.fail('a CONNECT has no content');
  return { method: 'CONNECT', target, version, fields, rawFields: raw, readContent, peer, id: 'req_1' };
}

function textOf({ status, fields, content }: Response): string {
  const lines = [];
  for (let at = 0; at < fields.length; at += 2) lines.push(`${fields[at]}: ${fields[at + 1]}`);
  return `HTTP/1.1 ${status} x\r\n${lines.join('\r\n')}\r\nConnection: close\r\n\r\n${String(content)}`;
}

/** A destination; its sockets are half-open and end with the test. */
export async function startDestination(
  context: TestContext,
  serve: (socket: Socket) => void,
  host = '127.0.0.1',
): Promise<number> {
  const server = createTcpServer({ allowHalfOpen: true }, serve);
  return (await listen(server, context, host)).port;
}

export type Answer = {
  readonly status: number;
  /** Everything after the header section so far. */
  readonly rest: string;
  readonly fields: ReadonlyMap<string, string>;
};

export type Client = { readonly socket: Socket; readonly answer: Answer };

/** Sends a CONNECT, with `head` in the same packet, and reads the header section of the answer. */
export async function sendConnect(
  context: TestContext,
  port: number,
  target: string,
  options: { readonly fields?: readonly string[]; readonly head?: string } = {},
): Promise<Client> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  context.after(() => socket.destroy());
  socket.on('error', () => undefined);
  const lines = [`CONNECT ${target} HTTP/1.1`, 'Host: x.example', ...(options.fields ?? [])];
  socket.write(`${lines.join('\r\n')}\r\n\r\n${options.head ?? ''}`);
  let text = '';
  while (!text.includes('\r\n\r\n')) {
    const chunk: unknown = socket.read();
    if (chunk === null) await Promise.race([once(socket, 'readable'), once(socket, 'close')]);
    else text += String(chunk);
    if (socket.destroyed) break;
  }
  const [headerSection = '', ...rest] = text.split('\r\n\r\n');
  const [statusLine = '', ...given] = headerSection.split('\r\n');
  const fields = new Map(
    given.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  );
  return {
    socket,
    answer: { status: Number(statusLine.split(' ')[1]), fields, rest: rest.join('\r\n\r\n') },
  };
}

/** An open tunnel of the rig's key. */
export async function openTunnel(
  context: TestContext,
  rig: Rig,
  target: string,
  head = '',
  key = rig.key,
): Promise<Client> {
  const client = await sendConnect(context, rig.port, target, {
    fields: [`Proxy-Authorization: Bearer ${key}`],
    head,
  });
  assert.equal(client.answer.status, 200, client.answer.rest);
  return client;
}

/** What a stream gives until its end or its breaking, as text, and how that came. */
export async function readToEnd(stream: Duplex, before = ''): Promise<{ text: string; how: string }> {
  let text = before;
  let how = 'end';
  stream.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  await new Promise<void>((resolve) => {
    stream.once('end', resolve);
    stream.once('close', () => resolve());
    stream.once('error', (error: NodeJS.ErrnoException) => {
      how = error.code ?? 'error';
      resolve();
    });
  });
  return { text, how };
}

/**
 * connect-udp over sockets, in the test's own process: a server of each protocol that does with `createUdp` what the program's does, the
 * program's own admission before it, and clients that speak capsules by hand.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  constants,
  createServer as createHttp2Server,
  type ServerHttp2Stream,
} from 'node:http2';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import { createAddressFinder } from '../../../src/egress/dial.ts';
import { codeOf } from '../../../src/egress/dial-failure.ts';
import { createEgressPolicy } from '../../../src/egress/policy.ts';
import type { Lookup } from '../../../src/egress/resolve.ts';
import type { Request, Response } from '../../../src/http/message.ts';
import { readRequestFields } from '../../../src/http/request-fields.ts';
import { CapsuleReader, datagramHeadBytes, writeDatagramHead } from '../../../src/http/syntax/capsule.ts';
import type { HostRules } from '../../../src/model/host-rules.ts';
import { authenticated } from '../../../src/model/principal.ts';
import type { Observation, Observe } from '../../../src/observe/observation.ts';
import { createOpenConnections } from '../../../src/observe/open-connections.ts';
import { createAdmission } from '../../../src/tunnel/admission.ts';
import { createUdp } from '../../../src/tunnel/connect-udp.ts';
import type { ClientSide, ProxyCall, ProxyReply } from '../../../src/tunnel/proxy-call.ts';
import { listen } from '../../harness/listening.ts';
import { knownAs } from '../../resources/known.ts';

export type ProxyOptions = {
  readonly egressAllow?: string;
  readonly ports?: string;
  readonly hosts?: readonly HostRules[];
  readonly idleMs?: number;
  readonly bufferBytesMax?: number;
  readonly bytesPerDayMax?: number;
  readonly tunnelsMax?: number;
  readonly lookup?: Lookup;
  readonly dnsMs?: number;
};

export type Protocol = 'HTTP/1.1' | 'HTTP/2';

export type Asking = {
  readonly path?: string;
  readonly credential?: string | undefined;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly protocol?: string;
  readonly signal?: AbortSignal;
};

/** An answer, and the tunnel where there is one. */
export type Answered = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
  readonly tunnel: Tunnel;
};

export type ProxyUnderTest = Awaited<ReturnType<typeof startProxy>>;

/** Bearer credentials that the servers know. */
export const tunneller = 'good';
export const withoutScope = 'reader';

/** What comes out of a tunnel, by hand. */
export class Tunnel {
  readonly duplex: Duplex;
  readonly #waiting: ((payload: Buffer) => void)[] = [];
  readonly received: Buffer[] = [];
  /** Resolves when the connection, or the stream, is gone; with how it broke where it did. */
  readonly gone: Promise<Error | undefined>;

  constructor(duplex: Duplex, head: Uint8Array = new Uint8Array()) {
    this.duplex = duplex;
    const reader = new CapsuleReader({
      datagramBytesMax: 65_535,
      onDatagram: (value) => {
        const payload = Buffer.from(value.subarray(1));
        const next = this.#waiting.shift();
        if (next === undefined) this.received.push(payload);
        else next(payload);
        return true;
      },
    });
    this.gone = new Promise((resolve) => {
      let broken: Error | undefined;
      duplex.on('error', (error: Error) => {
        broken = error;
      });
      duplex.on('close', () => resolve(broken));
    });
    reader.read(head);
    duplex.on('data', (chunk: Buffer) => reader.read(chunk));
  }

  send(payload: Uint8Array | string): void {
    this.duplex.write(datagram(payload));
  }

  next(): Promise<Buffer> {
    const here = this.received.shift();
    return here === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(here);
  }
}

/** A DATAGRAM capsule with a UDP payload. */
export function datagram(payload: Uint8Array | string, context = [0]): Buffer {
  const bytes = Buffer.from(payload);
  const valueBytes = context.length + bytes.length;
  const capsule = Buffer.alloc(datagramHeadBytes(valueBytes) + valueBytes);
  const at = writeDatagramHead(capsule, 0, valueBytes);
  capsule.set(context, at);
  capsule.set(bytes, at + context.length);
  return capsule;
}

/** Answers every datagram with itself. */
export async function startEcho(address = '127.0.0.1'): Promise<{ socket: UdpSocket; port: number }> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.on('message', (payload, { port, address: from }) => socket.send(payload, port, from));
  await bindApart(socket, address);
  return { socket, port: socket.address().port };
}

/**
 * Binds a destination at a number that no proxy of these tests listens at over TCP: the guard would take the destination for the proxy
 * itself. A listener over TCP keeps the number until the process ends.
 */
export async function bindApart(socket: UdpSocket, address = '127.0.0.1'): Promise<void> {
  const keeper = createTcpServer().unref();
  keeper.listen(0, '127.0.0.1');
  await once(keeper, 'listening');
  socket.bind((keeper.address() as AddressInfo).port, address);
  try {
    await once(socket, 'listening');
  } catch (error) {
    // Another socket over UDP has the number.
    if (codeOf(error) !== 'EADDRINUSE') throw error;
    await bindApart(socket, address);
  }
}

/** Stops with the test. */
export async function startProxy(t: TestContext, options: ProxyOptions = {}) {
  const facts: Observation[] = [];
  const revocations: (() => void)[] = [];
  const onClosed: (() => void)[] = [];
  const observe = (fact: Observation): void => {
    facts.push(fact);
    if (fact.kind === 'tunnel-closed') for (const listener of onClosed.splice(0)) listener();
  };
  const desk = admissionOf(options, observe, revocations);
  const ports: number[] = [];
  const policy = createEgressPolicy({
    egressAllow: options.egressAllow ?? '127.0.0.0/8,::1',
    egressPorts: '443',
    everyPort: true,
    ownListeners: () => ports.map((port) => ({ address: '127.0.0.1', port })),
  });
  const lookup = options.lookup === undefined ? {} : { lookup: options.lookup };
  const find = createAddressFinder({ policy, egressDnsMs: options.dnsMs ?? 1000, ...lookup });
  const udp = createUdp(
    desk,
    { find, judge: policy.judge },
    {
      limits: {
        tunnelUdpIdleMs: options.idleMs ?? 10_000,
        tunnelUdpBufferBytesMax: options.bufferBytesMax ?? 65_536,
      },
      observe,
      isForeign: ({ target }) => target.includes('other.example'),
    },
  );
  const one = await listenHttp1(udp);
  const two = await listenHttp2(udp);
  ports.push(one.port, two.port);
  const session = connectHttp2(`http://127.0.0.1:${two.port}`);
  // No `:protocol` may be sent before the server has said that it takes it (RFC 8441 §3).
  await once(session, 'remoteSettings');
  t.after(() => {
    session.destroy();
    one.close();
    two.close();
  });

  return {
    facts,
    ports,
    desk,
    udp,
    /** A request that no server has read. */
    request: (path: string): Request => {
      const rawFields = ['Proxy-Authorization', `Bearer ${tunneller}`];
      return requestOf('GET', path, '2.0', rawFields, 'connect-udp');
    },
    revoke: () => revocations.splice(0).forEach((listener) => void listener()),
    ask: (protocol: Protocol, asking: Asking = {}): Promise<Answered> =>
      protocol === 'HTTP/1.1' ? askHttp1(one.port, asking) : askHttp2(session, asking),
    /** The fact of the tunnel that closed, once it has. */
    async closed() {
      for (;;) {
        const fact = facts.find(({ kind }) => kind === 'tunnel-closed');
        if (fact?.kind === 'tunnel-closed') return fact;
        await new Promise<void>((resolve) => onClosed.push(resolve));
      }
    },
  };
}

function admissionOf(options: ProxyOptions, observe: Observe, revocations: (() => void)[]) {
  return createAdmission({
    connections: createOpenConnections(Date.now),
    settings: {
      tunnelPorts: options.ports ?? '1-65535',
      tunnelsMax: options.tunnelsMax ?? 100,
      tunnelsPerPrincipalMax: 100,
      tunnelBytesPerDayMax: options.bytesPerDayMax ?? 0,
    },
    authenticate: async (credential) => {
      if (credential === undefined) return { principal: { kind: 'anonymous' } };
      const name = credential.replace('Bearer ', '');
      if (name !== tunneller && name !== withoutScope) return { problem: 'invalid_token' };
      const principal = authenticated({ id: name, scopes: name === tunneller ? ['tunnel'] : ['read'] });
      const onEnd = (listener: () => void) => {
        revocations.push(listener);
        return () => undefined;
      };
      return { ...knownAs(principal), onEnd };
    },
    addressOf: ({ peer }) => peer,
    hostsOf: () => options.hosts ?? [],
    observe,
    clock: Date.now,
  });
}

type Udp = (call: ProxyCall) => Promise<ProxyReply>;

async function listenHttp1(udp: Udp) {
  const server = createServer();
  server.on('upgrade', async (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    const gone = new AbortController();
    socket.on('close', () => gone.abort());
    socket.on('error', () => undefined);
    const { method = '', url = '', httpVersion, rawHeaders } = incoming;
    const reply = await udp({
      request: requestOf(method, url, httpVersion, rawHeaders),
      signal: gone.signal,
    });
    if ('refused' in reply) {
      const { status, fields, content } = reply.refused;
      const body = content as string;
      socket.end(
        `HTTP/1.1 ${status} x\r\n${lines(fields)}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      );
    } else if (socket.destroyed) reply.abandon();
    else {
      const switching = 'HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: connect-udp\r\n';
      socket.write(`${switching}${lines(reply.fields)}\r\n`);
      const reset = (): void => void (socket as import('node:net').Socket).resetAndDestroy();
      reply.join({ duplex: socket, head, reset });
    }
  });
  return listen(server);
}

async function listenHttp2(udp: Udp) {
  const server = createHttp2Server({ settings: { enableConnectProtocol: true } });
  server.on('stream', async (stream: ServerHttp2Stream, headers, _flags, rawHeaders: string[]) => {
    const gone = new AbortController();
    stream.on('close', () => gone.abort());
    stream.on('error', () => undefined);
    const request = requestOf(
      'GET',
      String(headers[':path']),
      '2.0',
      rawHeaders,
      String(headers[':protocol']),
    );
    const reply = await udp({ request, signal: gone.signal });
    if ('refused' in reply) {
      const { status, fields, content } = reply.refused;
      if (stream.destroyed) return;
      stream.respond({ ':status': status, ...recordOf(fields) });
      stream.end(content as string);
    } else if (stream.destroyed) reply.abandon();
    else {
      stream.respond({ ':status': 200, ...recordOf(reply.fields) });
      const reset = (): void => stream.close(constants.NGHTTP2_CONNECT_ERROR);
      reply.join({ duplex: stream, head: new Uint8Array(), reset } satisfies ClientSide);
    }
  });
  return listen(server);
}

function askHttp1(port: number, asking: Asking): Promise<Answered> {
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  const outgoing = httpRequest({
    host: '127.0.0.1',
    port,
    path: asking.path ?? '/',
    headers: {
      Connection: 'Upgrade',
      Upgrade: 'connect-udp',
      'Capsule-Protocol': '?1',
      ...authorization(asking),
      ...asking.headers,
    },
    ...(asking.signal === undefined ? {} : { signal: asking.signal }),
  });
  outgoing.on('error', reject);
  outgoing.on('upgrade', ({ headers, statusCode = 0 }, socket, head) => {
    resolve({ status: statusCode, headers, body: '', tunnel: new Tunnel(socket, head) });
  });
  outgoing.on('response', async (incoming) => {
    const { headers, statusCode = 0, socket } = incoming;
    const body = Buffer.concat(await incoming.toArray()).toString();
    resolve({ status: statusCode, headers, body, tunnel: new Tunnel(socket) });
  });
  outgoing.end();
  return promise;
}

async function askHttp2(session: ClientHttp2Session, asking: Asking): Promise<Answered> {
  const stream = session.request(
    {
      ':method': 'CONNECT',
      ':protocol': asking.protocol ?? 'connect-udp',
      ':scheme': 'http',
      ':authority': 'proxy.example',
      ':path': asking.path ?? '/',
      'capsule-protocol': '?1',
      ...authorization(asking),
      ...asking.headers,
    },
    { endStream: false, ...(asking.signal === undefined ? {} : { signal: asking.signal }) },
  );
  const [headers] = await once(stream, 'response');
  const status = headers[':status'] as number;
  if (status === 200) return { status, headers, body: '', tunnel: new Tunnel(stream) };
  const body = Buffer.concat(await stream.toArray()).toString();
  stream.end();
  return { status, headers, body, tunnel: new Tunnel(stream) };
}

function authorization({ credential = tunneller, headers = {} }: Asking): Record<string, string> {
  if (credential === '' || 'Proxy-Authorization' in headers) return {};
  return { 'Proxy-Authorization': `Bearer ${credential}` };
}

function requestOf(
  method: string,
  target: string,
  version: string,
  rawFields: readonly string[],
  protocol?: string,
): Request {
  return {
    method,
    target,
    version,
    rawFields,
    fields: readRequestFields(rawFields),
    protocol,
    readContent: () => Promise.reject(new Error('connect-udp has no content')),
    peer: '127.0.0.1',
    id: 'req_1',
  };
}

function lines(fields: Response['fields']): string {
  let text = '';
  for (let at = 0; at + 1 < fields.length; at += 2) text += `${fields[at]}: ${fields[at + 1]}\r\n`;
  return text;
}

function recordOf(fields: Response['fields']): Record<string, string> {
  const record: Record<string, string> = {};
  for (let at = 0; at + 1 < fields.length; at += 2)
    record[(fields[at] ?? '').toLowerCase()] = fields[at + 1] ?? '';
  return record;
}

/** The path of the template. */
export function pathTo(host: string, port: number): string {
  return `/.well-known/masque/udp/${encodeURIComponent(host)}/${port}/`;
}

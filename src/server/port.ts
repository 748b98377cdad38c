/**
 * A port of the listener: its sockets, and the protocol that is spoken on each connection. The loop accepts one connection each turn from each
 * socket that listens: behind 1,000 that come at once, a client waits for as many turns, whatever each does beside. So a port is several
 * sockets where the system spreads connections over them (SO_REUSEPORT): the same 1,000 are accepted in some 130 turns.
 */
import { createServer, type Server, type ServerOpts, type Socket } from 'node:net';
import { platform } from 'node:process';
import { createServer as createTls, type TLSSocket, type Server as TlsServer } from 'node:tls';
import { ignoreError, onArrival, ownEmitter } from '../observe/own-emitter.ts';
import type { Certificate, CertificatePair } from './certificate.ts';
import { connectionOf } from './connection.ts';
import type { Context } from './context.ts';
import { rawAnswer } from './handle.ts';
import { closeInStages } from './unread-content.ts';

const socketsPerPort = platform === 'linux' ? 8 : 1;
const keepAliveProbeMs = 60_000;

/** Half-open: a client still gets its responses after its FIN, and a tunnel continues in the other direction. */
const socketOptions: ServerOpts = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: keepAliveProbeMs,
};

/**
 * Connections in the system's accept queue, within net.core.somaxconn. With node's 511, a burst made clients wait a
 * second for the next SYN.
 */
const waitingConnectionsMax = 4_096;

/** Takes a connection that was admitted. */
type Take = (socket: Socket) => void;

type Place = { readonly host: string; readonly port: number };

type OpenPort = Place & {
  /** The sockets that listen, for the drain to close. */
  readonly sockets: readonly Server[];
};

/** `port`: 0 picks a free one. `isShared`: other threads listen at it, too. */
type PortPlace = Place & { readonly isShared: boolean };

/** Rejects with node's error (`EADDRINUSE`, `EACCES`), and then nothing is open. */
export async function openPort(context: Context, take: Take, at: PortPlace): Promise<OpenPort> {
  const { isShared } = at;
  let place: Place = socketsPerPort === 1 || isShared ? at : await freePlace(at);
  const sockets: Server[] = [];
  try {
    while (sockets.length < socketsPerPort) {
      const socket = createSocket(context, take);
      place = await listen(socket, place, isShared || socketsPerPort > 1);
      sockets.push(socket);
    }
  } catch (error) {
    for (const socket of sockets) socket.close();
    throw error;
  }
  return { host: place.host, port: place.port, sockets };
}

/** A port with SO_REUSEPORT opens although another program has it open in the same way, and without it only if none has. */
async function freePlace(at: Place): Promise<Place> {
  const alone = ownEmitter(createServer(), ignoreError);
  onArrival(alone, 'connection', ignoreError, (socket: Socket) => socket.destroy());
  const place = await listen(alone, at, false);
  await closeSocket(alone);
  return place;
}

export function closeSocket(socket: Server): Promise<void> {
  return new Promise((resolve) => socket.close(() => resolve()));
}

/** A failed accept (the system is out of memory or descriptors) is logged, and the port continues; `listen` reports a port that cannot be opened. */
function createSocket(context: Context, take: Take): Server {
  const listening = ownEmitter(createServer(socketOptions), (error) => {
    if (listening.listening) context.observe({ kind: 'accept-failed', why: error.message });
  });
  onArrival(listening, 'connection', ignoreError, (socket: Socket) => {
    context.turns.connectionCame();
    if (context.connections.admit(socket)) take(socket);
    else {
      context.observe({ kind: 'connection-refused', peer: socket.remoteAddress ?? '' });
      socket.destroy();
    }
  });
  return listening;
}

async function listen(socket: Server, { host, port }: Place, reusePort: boolean): Promise<Place> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once('error', reject);
  socket.listen({ host, port, reusePort, backlog: waitingConnectionsMax }, resolve);
  await promise;
  socket.off('error', reject);
  const address = socket.address();
  if (address === null || typeof address === 'string') throw new Error('the port has no address');
  return { host: address.address, port: address.port };
}

// Detects the protocol of a connection from its first octets, before a server reads it. Modes:
//
// - looking: octets are held until they decide. A timer bounds the wait, since no server has the connection.
// - waiting: the octets are known and in the socket again as if unread. What a server makes of a connection, such as a parser, a session or
//   a handshake, has its turn of the event loop.
// - passed: a server has the socket.
// - gone: the client left first, or sent nothing until the timer.
//
// A `data` listener takes the octets and `unshift` returns them: if they decide and no other work waits, the server parses them in the
// same turn. A paused socket that holds them has not ended for its reader, although the client may have sent its FIN behind them.
//

type Look<Kind> = {
  /** Undefined: these octets fit several protocols. */
  readonly judge: (octets: Buffer) => Kind | undefined;
  /** The protocol of a client that stops or ends before the octets decide. */
  readonly otherwise: Kind;
  /** The octets begin a request of a probe, which goes before the connections that wait. */
  readonly isProbe?: (octets: Buffer) => boolean;
  /** Hands over the socket, which is paused and holds its octets; the receiver gets its events from now on. */
  readonly pass: (socket: Socket, kind: Kind) => void;
  readonly timeoutMs: number;
};

/** Errors of the socket are the caller's to listen for. */
function lookAtFirstOctets<Kind>(context: Context, socket: Socket, look: Look<Kind>): void {
  let held: Buffer | undefined;
  const leave = () => {
    clearTimeout(timer);
    socket.off('data', onData);
    socket.off('end', onEnd);
    socket.off('close', leave);
  };
  const onData = (chunk: Buffer) => {
    held = held === undefined ? chunk : Buffer.concat([held, chunk]);
    const kind = look.judge(held);
    if (kind === undefined) return;
    leave();
    passInTurn(context, socket, look, { kind, octets: held });
  };
  const onEnd = () => {
    leave();
    // Half a method and the end: not a request, and without a response (RFC 9112 §9.6).
    socket.destroySoon();
  };
  const timer = setTimeout(() => {
    leave();
    if (held === undefined) socket.destroySoon();
    else passInTurn(context, socket, look, { kind: look.otherwise, octets: held });
  }, look.timeoutMs).unref();
  socket.on('data', onData);
  socket.on('end', onEnd);
  socket.on('close', leave);
}

type Decided<Kind> = { readonly kind: Kind; readonly octets: Buffer };

function passInTurn<Kind>(
  { turns, monotonic }: Context,
  socket: Socket,
  look: Look<Kind>,
  { kind, octets }: Decided<Kind>,
): void {
  const connection = connectionOf(socket, monotonic);
  socket.pause();
  socket.unshift(octets);
  connection.isWaiting = true;
  const pass = () => {
    connection.isWaiting = false;
    if (!socket.destroyed) look.pass(socket, kind);
  };
  if (look.isProbe?.(octets) === true) turns.takeProbe(pass);
  else turns.take(pass);
}

/** The servers behind a port. They never listen themselves; a `connection` event gives them a socket. */
export type ConnectionTaker = { emit(event: 'connection', socket: Socket): boolean };

export type Protocols = { readonly http1: ConnectionTaker; readonly http2: ConnectionTaker };

// The cleartext port (§4.13): HTTP/1.1, and HTTP/2 by prior knowledge, whose connection preface no HTTP/1.1 request
// begins with (RFC 9113 §3.3, §3.4). `P` and `PR` also begin POST and PROPFIND, so the third octet decides; the chosen
// server judges the rest.
//

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const octetsThatDecide = 3;

export function createCleartextFront(context: Context, protocols: Protocols): Take {
  const { limits } = context;
  const look = {
    judge: protocolOf,
    isProbe: (octets: Buffer) => context.probes.has(targetOf(octets)),
    otherwise: 'http1',
    timeoutMs: Math.min(limits.h2cTimeoutMs, limits.headersTimeoutMs),
    pass: (socket: Socket, kind: 'http1' | 'http2') => {
      protocols[kind].emit('connection', socket);
      // A session of HTTP/2 reads what its socket holds by itself.
      if (kind === 'http1') socket.resume();
    },
  } as const;
  return (socket) => lookAtFirstOctets(context, socket, look);
}

const space = 0x20;

/** The target of a request line; empty if it has not arrived completely. */
function targetOf(octets: Buffer): string {
  const start = octets.indexOf(space) + 1;
  return octets.toString('latin1', start, Math.max(start, octets.indexOf(space, start)));
}

/** Undefined: the octets begin the preface and other methods too. */
export function protocolOf(octets: Uint8Array): 'http1' | 'http2' | undefined {
  const length = Math.min(octets.length, preface.length);
  for (let index = 0; index < length; index += 1) {
    if (octets[index] !== preface[index]) return 'http1';
  }
  return length < octetsThatDecide ? undefined : 'http2';
}

// The port over TLS 1.2 and 1.3 (§4.13): ALPN chooses between HTTP/2 and HTTP/1.1 (RFC 7301); a client without ALPN
// gets HTTP/1.1. `Upgrade: h2c` is ignored here (RFC 9113 §3.3).
//
// If the first octet of a connection begins a cleartext request, the response is a cleartext 400 that names the
// protocol of the port. Any other failure before the end of the handshake ends the connection with OpenSSL's alert.
//

/** `tlsAlpn` of the settings: offered protocols, best first. */
type AlpnOffer = 'h2,http/1.1' | 'http/1.1';

export type ListenTls = {
  readonly certificate: Certificate;
  readonly alpn: AlpnOffer;
  /** Beside the cleartext port, where 0 picks a free one; undefined: the one port uses TLS. */
  readonly port: number | undefined;
};

type FirstOctet = 'handshake' | 'request' | 'other';

/** ContentType handshake (RFC 8446 §5.1). */
const handshakeOctet = 0x16;
const minVersion = 'TLSv1.2';

export function createTlsFront(context: Context, protocols: Protocols, listenTls: ListenTls): Take {
  const { limits } = context;
  const carriers: Carriers = new Map();
  const tls = createTlsServer(context, carriers, protocols, listenTls);
  const look = {
    judge: (octets: Uint8Array) => judgeFirstOctet(octets[0] ?? 0),
    otherwise: 'other',
    timeoutMs: limits.headersTimeoutMs,
    pass: (socket: Socket, kind: FirstOctet) => {
      if (kind === 'request') refuseCleartext(context, socket);
      else if (kind === 'other') socket.destroy();
      else {
        const name = peerName(socket);
        carriers.set(name, socket);
        socket.once('close', () => carriers.delete(name));
        // The TLSSocket reads what the socket holds.
        tls.emit('connection', socket);
      }
    },
  } as const;
  return (socket) => lookAtFirstOctets<FirstOctet>(context, socket, look);
}

/** Sockets before the end of their TLS handshake, by peer: node:tls does not say which of them an error concerns. */
type Carriers = Map<string, Socket>;

function createTlsServer(
  context: Context,
  carriers: Carriers,
  { http1, http2 }: Protocols,
  { certificate, alpn }: ListenTls,
): TlsServer {
  const tls = ownEmitter(
    createTls({
      ...certificate.pair(),
      minVersion,
      ALPNProtocols: alpn.split(','),
      handshakeTimeout: context.limits.headersTimeoutMs,
    }),
    ignoreError,
  );
  certificate.onChange((pair: CertificatePair) => tls.setSecureContext({ ...pair, minVersion }));
  onArrival(tls, 'secureConnection', ignoreError, (socket: TLSSocket) => {
    const carrier = carriers.get(peerName(socket));
    if (carrier !== undefined) {
      carriers.delete(peerName(socket));
      recordCarrier(socket, carrier);
      // From here on, the connection is identified by the socket of HTTP.
      context.connections.replace(carrier, socket);
    }
    (socket.alpnProtocol === 'h2' ? http2 : http1).emit('connection', socket);
  });
  tls.on('tlsClientError', (_error, socket) => {
    context.observe({
      kind: 'client-error',
      code: 'tls_failed',
      status: 0,
      peer: socket.remoteAddress ?? '',
    });
    socket.destroy();
  });
  return tls;
}

function peerName(socket: Socket): string {
  return `${socket.remoteAddress ?? ''} ${socket.remotePort ?? 0}`;
}

function judgeFirstOctet(octet: number): FirstOctet {
  if (octet === handshakeOctet) return 'handshake';
  const isLetter = (octet >= 0x41 && octet <= 0x5a) || (octet >= 0x61 && octet <= 0x7a);
  return isLetter ? 'request' : 'other';
}

function refuseCleartext(context: Context, socket: Socket): void {
  const message = 'this port requires TLS: use https';
  const { status, text, code } = rawAnswer(context, { code: 'message_invalid', message });
  context.observe({ kind: 'client-error', code, status, peer: connectionOf(socket, context.monotonic).peer });
  socket.write(text);
  closeInStages(context, socket);
}

const carrierKey = Symbol('carrier');
type CarriedSocket = Socket & { [carrierKey]?: Socket };

/** Records the TCP socket under a TLS connection: only it can send a RST, which node:net refuses on a TLSSocket. */
function recordCarrier(socket: Socket, carrier: Socket): void {
  (socket as CarriedSocket)[carrierKey] = carrier;
}

/** Resets the connection, so that the client sees a failure. */
export function resetConnection(socket: Socket): void {
  const carrier = (socket as CarriedSocket)[carrierKey] ?? socket;
  if (!carrier.destroyed) carrier.resetAndDestroy();
  if (carrier !== socket) socket.destroy();
}

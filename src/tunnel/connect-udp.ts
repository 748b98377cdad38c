/**
 * connect-udp (§4.10.8; RFC 9298): admitted like every tunnel, by the same credentials, ports, host rules and limits;
 * the egress guard judges the destination. A success only says that a socket is open: UDP does not tell who listens
 * (§3.1). `connect-ip` (RFC 9484) is not supported, because Node cannot open the network interface that it needs.
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Settings } from '../config/settings.ts';
import type { FindAddresses, RefusedBy } from '../egress/dial.ts';
import { codeOf, DialFailure } from '../egress/dial-failure.ts';
import type { EgressPolicy } from '../egress/policy.ts';
import type { Request } from '../http/message.ts';
import { type Problem, problemStatus } from '../http/problem.ts';
import { problems } from '../http/problem-registry.ts';
import {
  CapsuleReader,
  datagramHeadBytes,
  readVariableInteger,
  variableIntegerBytes,
  writeDatagramHead,
} from '../http/syntax/capsule.ts';
import { trimWhitespace } from '../http/syntax/field-value.ts';
import { parseUdpTarget } from '../http/syntax/request-target.ts';
import { isHost } from '../http/syntax/uri.ts';
import type { Observe, TunnelEnd } from '../observe/observation.ts';
import { ignoreError, onEnd, ownEmitter } from '../observe/own-emitter.ts';
import type { Account, AdmissionDesk, Admitted, OpenTunnel } from './admission.ts';
import { type Destination, toDestination } from './destination.ts';
import { refusalOfFailure } from './dial-destination.ts';
import { type ClientSide, type HttpProxy, type ProxyReply, refusalAnswer } from './proxy-call.ts';

/** RFC 9297 §3.4. The server adds what HTTP/1.1 needs for 101. */
const fields = ['Capsule-Protocol', '?1'];

export function createUdp(
  desk: Pick<AdmissionDesk, 'admit'>,
  guard: UdpGuard,
  {
    limits,
    observe,
    isForeign,
  }: Pick<HttpProxy, 'isForeign'> & { readonly limits: UdpTunnelLimits; readonly observe: Observe },
): HttpProxy['udp'] {
  return async (call) => {
    const { request } = call;
    const problem = handshakeProblem(request) ?? targetProblem(request, isForeign);
    const destination = destinationOf(request);
    if (problem !== undefined || destination === undefined) {
      return { refused: refuseMalformed(request, problem ?? offTemplate, observe) };
    }
    const decision = await desk.admit(call, 'udp', destination);
    if (!decision.ok) return { refused: decision.refused };
    const { admitted } = decision;
    try {
      const socket = await openUdpSocket(guard, admitted.destination, call.signal);
      if (!call.signal.aborted) return opened(admitted, socket, limits);
      socket.socket.close();
    } catch (error) {
      if (!call.signal.aborted) return { refused: admitted.refuse(refusalOfFailure(error)) };
    }
    admitted.release();
    return { refused: { status: problemStatus('destination_failed'), fields: [], content: null } };
  };
}

function opened(admitted: Admitted, destination: ConnectedSocket, limits: UdpTunnelLimits): ProxyReply {
  const { socket, address, dnsMs } = destination;
  return {
    fields,
    join(client: ClientSide) {
      let open: OpenTunnel | undefined;
      const tunnel = new UdpTunnel({
        client,
        destination,
        limits,
        account: admitted.account,
        onEnd: (why, sentBytes, receivedBytes) => open?.close(why, sentBytes, receivedBytes),
      });
      open = admitted.open({ address, dnsMs, connectMs: null }, (why) => tunnel.end(why));
      tunnel.start();
    },
    abandon() {
      socket.close();
      admitted.release();
    },
  };
}

const offTemplate: Problem = {
  code: 'tunnel_target_invalid',
  message: 'the target must be /.well-known/masque/udp/{host}/{port}/',
};

/**
 * Refuses an absolute target with `http` that names another server: it asks a proxy to forward the request, which an
 * Upgrade cannot. Clients of connect-udp build an `https` one from the template with any name of this server, which is
 * ignored.
 */
function targetProblem(request: Request, isForeign: HttpProxy['isForeign']): Problem | undefined {
  const isPlain = request.target.slice(0, plainScheme.length).toLowerCase() === plainScheme;
  if (!isPlain || !isForeign(request)) return undefined;
  return {
    code: 'tunnel_target_invalid',
    message: 'the target names another server, and an Upgrade cannot be forwarded',
  };
}

const plainScheme = 'http://';

function destinationOf(request: Request): Destination | undefined {
  const target = parseUdpTarget(request.target);
  return target === undefined ? undefined : toDestination(target.host, String(target.port));
}

function refuseMalformed(request: Request, problem: Problem, observe: Observe) {
  const { code, message = problems[code].message } = problem;
  const nowhere = { host: '', port: 0, principal: undefined };
  const status = problemStatus(code);
  observe({
    kind: 'tunnel-refused',
    peer: request.peer,
    how: 'udp',
    ...nowhere,
    status,
    code,
    why: message,
  });
  return refusalAnswer({ code, message, error: 'http_request_error' }, request.fields.accept);
}

const udpProtocol = 'connect-udp';

/**
 * Checks a request for connect-udp besides its target: over HTTP/1.1 a GET with Upgrade, Connection and one Host (RFC
 * 9298 §3.2), over HTTP/2 an extended CONNECT (§3.4), and no content framed by fields over either (RFC 9297 §3.2).
 * Capsule-Protocol is ignored: it is for intermediaries, and the protocol implies it (RFC 9297 §3.4). Undefined: valid.
 */
function handshakeProblem(request: Request): Problem | undefined {
  const { fields } = request;
  if (request.protocol === undefined) {
    if (request.version !== '1.1') return broken('connect-udp needs HTTP/1.1, or an extended CONNECT');
    if (request.method !== 'GET') return broken('connect-udp requires GET');
    if (fields.hostCount !== 1 || !isHost(fields.host ?? '')) return { code: 'host_invalid' };
    if (!hasToken(request, 'upgrade', udpProtocol)) return broken('Upgrade must name connect-udp');
    if (!hasToken(request, 'connection', 'upgrade')) return broken('Connection must name Upgrade');
    return fields.transferEncoding === undefined ? withoutLength(request) : withContent;
  }
  if (request.protocol !== udpProtocol) {
    return broken('the protocol of the extended CONNECT must be connect-udp');
  }
  // A `host` that differs from `:authority`.
  if (fields.hostCount > 1) return { code: 'host_invalid' };
  // HTTP/2 has no Transfer-Encoding: `fields.transferEncoding` marks a stream of unknown length.
  return withoutLength(request);
}

const withContent: Problem = { code: 'content_unexpected', message: 'connect-udp has no content' };

function withoutLength({ fields }: Request): Problem | undefined {
  return fields.contentLength === undefined ? undefined : withContent;
}

function broken(message: string): Problem {
  return { code: 'handshake_invalid', message };
}

/** True if the list field, on any number of lines, has the token, in any case. */
function hasToken({ rawFields }: Request, name: string, token: string): boolean {
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    if (rawFields[at]?.toLowerCase() !== name) continue;
    const members = (rawFields[at + 1] ?? '').split(',');
    if (members.some((member) => trimWhitespace(member).toLowerCase() === token)) return true;
  }
  return false;
}

// An open connect-udp tunnel (RFC 9298 §5): capsules of the client become datagrams to one address, datagrams from
// there become capsules. Nothing is queued for a slow side: what does not fit is lost, as protocols over UDP expect.
//
// Modes: *open*, *closing* (the socket is gone, the client has yet to close), *closed*. Open ends when the client ends,
// breaks or sends an invalid capsule, when the destination is unreachable (§3.1: the stream must close then), after an
// idle time, or by a cut. Closing ends with the client's connection, by force after `closeMsMax`.

/** `tunnelUdpBufferBytesMax`: octets that may wait for the client, and as many for the system. */
type UdpTunnelLimits = Pick<Settings, 'tunnelUdpIdleMs' | 'tunnelUdpBufferBytesMax'>;

type UdpTunnelOptions = {
  readonly client: ClientSide;
  readonly destination: ConnectedSocket;
  readonly limits: UdpTunnelLimits;
  readonly account: Account;
  /** Called once, with payload octets. */
  readonly onEnd: (why: TunnelEnd, sentBytes: number, receivedBytes: number) => void;
};

/** RFC 9298 §5: the longest payload of a UDP datagram; a client that sends more is cut off. */
const payloadBytesMax = 65_527;
/** A payload behind a context id of any length. */
const valueBytesMax = payloadBytesMax + 8;
/** The context of UDP payloads (RFC 9298 §4); no other is supported. */
const udpContext = 0;
const closeMsMax = 2000;

/** Errors of one datagram, not of the path: it is too long, has no room now, or is refused by a packet filter. */
const lossCodes: ReadonlySet<string> = new Set([
  'EMSGSIZE',
  'EPERM',
  'EACCES',
  'EAGAIN',
  'ENOBUFS',
  'ENOMEM',
]);

export class UdpTunnel {
  readonly #client: ClientSide;
  readonly #destination: ConnectedSocket;
  readonly #limits: UdpTunnelLimits;
  readonly #account: Account;
  readonly #onEnd: UdpTunnelOptions['onEnd'];
  readonly #capsules: CapsuleReader;
  #isOpen = true;
  #sentBytes = 0;
  #receivedBytes = 0;
  #passedMs: number;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(options: UdpTunnelOptions) {
    this.#client = options.client;
    this.#destination = options.destination;
    this.#limits = options.limits;
    this.#account = options.account;
    this.#onEnd = options.onEnd;
    this.#passedMs = performance.now();
    this.#capsules = new CapsuleReader({
      datagramBytesMax: valueBytesMax,
      onDatagram: (value, valueBytes) => this.#takeValue(value, valueBytes),
    });
  }

  start(): void {
    const { duplex, head } = this.#client;
    const { socket } = this.#destination;
    socket.on('message', (payload, from) => this.#takeDatagram(payload, from));
    socket.on('error', (error) => this.#judgeFailure(error));
    duplex.on('error', () => this.end('client-reset'));
    duplex.on('close', () => this.end('client-reset'));
    onEnd(duplex, () => this.#endOfClient());
    this.#watchIdle(this.#limits.tunnelUdpIdleMs);
    if (duplex.destroyed) {
      this.end('client-reset');
      return;
    }
    this.#capsules.read(head);
    // No backpressure on the client but the system's: its datagrams go on at once or are lost.
    duplex.on('data', (chunk: Uint8Array) => this.#capsules.read(chunk));
  }

  /** Closes both sides. Further calls do nothing. */
  end(why: TunnelEnd): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearTimeout(this.#idleTimer);
    this.#destination.socket.close();
    if (why === 'client-reset' || why === 'destination-reset') this.#client.reset();
    else this.#closeClient();
    this.#onEnd(why, this.#sentBytes, this.#receivedBytes);
  }

  #closeClient(): void {
    const { duplex, reset } = this.#client;
    duplex.end();
    if (duplex.destroyed) return;
    const timer = setTimeout(reset, closeMsMax);
    timer.unref();
    duplex.once('close', () => clearTimeout(timer));
  }

  #endOfClient(): void {
    // A truncated capsule makes the message incomplete (RFC 9297 §3.3).
    this.end(this.#capsules.isBetweenCapsules ? 'ended' : 'client-reset');
  }

  #takeValue(value: Uint8Array, valueBytes: number): boolean {
    if (!this.#isOpen) return false;
    const context = readVariableInteger(value, 0);
    if (context === udpContext) {
      const contextBytes = variableIntegerBytes(value[0] ?? 0);
      if (valueBytes - contextBytes > payloadBytesMax) this.end('client-reset');
      else this.#send(value.subarray(contextBytes));
    } else if (context === undefined) this.end('client-reset');
    return this.#isOpen;
  }

  #send(payload: Uint8Array): void {
    const { socket } = this.#destination;
    if (socket.getSendQueueSize() + payload.length > this.#limits.tunnelUdpBufferBytesMax) return;
    socket.send(payload, this.#onSent);
    this.#sentBytes += payload.length;
    this.#passed(payload.length);
  }

  readonly #onSent = (error: Error | null): void => {
    if (error !== null) this.#judgeFailure(error);
  };

  #takeDatagram(payload: Uint8Array, from: RemoteInfo): void {
    const { address, port } = this.#destination;
    // Between binding and connecting, the socket accepts datagrams of any sender (RFC 9298 §3.1).
    if (!this.#isOpen || from.port !== port || from.address !== address) return;
    const valueBytes = 1 + payload.length;
    const capsule = Buffer.allocUnsafe(datagramHeadBytes(valueBytes) + valueBytes);
    const { duplex } = this.#client;
    if (duplex.writableLength + capsule.length > this.#limits.tunnelUdpBufferBytesMax) return;
    const at = writeDatagramHead(capsule, 0, valueBytes);
    capsule[at] = udpContext;
    capsule.set(payload, at + 1);
    duplex.write(capsule);
    this.#receivedBytes += payload.length;
    this.#passed(payload.length);
  }

  #passed(bytes: number): void {
    this.#passedMs = performance.now();
    if (!this.#account.spend(bytes)) this.end('bytes');
  }

  #judgeFailure(error: Error): void {
    if (!lossCodes.has(codeOf(error))) this.end('destination-reset');
  }

  /** One timer, set anew when it ends and not with each datagram. */
  #watchIdle(waitMs: number): void {
    this.#idleTimer = setTimeout(() => {
      const restMs = this.#passedMs + this.#limits.tunnelUdpIdleMs - performance.now();
      if (restMs > 0) this.#watchIdle(restMs);
      else this.end('idle');
    }, waitMs);
  }
}

// Connects a UDP socket to a host and port (RFC 9298 §3.1). The egress guard judges all addresses of a name; the first
// with a route is used, because UDP has no answer by which to choose. Connected, so that the system drops datagrams from
// elsewhere and reports ICMP errors.
//
// Node leaves the Don't Fragment bit to the system, which sets it on Linux up to the known path MTU.

/** The egress guard without its ports, which admission has checked. */
type UdpGuard = { readonly find: FindAddresses; readonly judge: EgressPolicy['judge'] };

type ConnectedSocket = {
  readonly socket: Socket;
  /** The peer's address, in the spelling in which the socket reports senders. */
  readonly address: string;
  readonly port: number;
  /** Duration of the lookup; null for an address. */
  readonly dnsMs: number | null;
};

/**
 * Rejects with a `DialFailure`, whose `cause` names the refused address to operators, or with the reason of the signal.
 * Only a lookup needs a timeout: connecting UDP sends nothing.
 */
async function openUdpSocket(
  { find, judge }: UdpGuard,
  { host, port }: Destination,
  signal: AbortSignal,
): Promise<ConnectedSocket> {
  const { addresses, dnsMs } = await find(host, port, signal);
  let cause: unknown;
  for (const address of addresses) {
    signal.throwIfAborted();
    try {
      return { ...(await connect(address, port, judge)), dnsMs };
    } catch (error) {
      if (error instanceof DialFailure) throw error;
      cause = error;
    }
  }
  throw new DialFailure('connect', 'There is no route to the destination', cause);
}

type Peer = Omit<ConnectedSocket, 'dnsMs'>;

function connect(address: string, port: number, judge: EgressPolicy['judge']): Promise<Peer> {
  const { promise, resolve, reject } = Promise.withResolvers<Peer>();
  // ICMP errors may arrive before the tunnel listens, or after it has ended.
  const socket = ownEmitter(createSocket(isIPv6(address) ? 'udp6' : 'udp4'), ignoreError);
  const fail = (error: unknown): void => {
    socket.close();
    reject(error);
  };
  socket.once('error', fail);
  // Node reports a failure to the callback of `connect`, and one of binding as an event.
  socket.connect(port, address, (error?: unknown) => {
    socket.off('error', fail);
    try {
      if (error !== undefined && error !== null) throw error;
      const { address: peer } = socket.remoteAddress();
      const verdict = judge(peer, port);
      if (!verdict.allowed) {
        const { reason, why } = verdict;
        const by: RefusedBy = { address: peer, reason, why };
        throw new DialFailure('refused', 'The host has an address that is not permitted', by);
      }
      resolve({ socket, address: peer, port });
    } catch (failure) {
      fail(failure);
    }
  });
  return promise;
}

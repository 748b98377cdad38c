/**
 * connect-udp (§4.10.8; RFC 9298): admitted like every tunnel, by the same credentials, ports, host rules and limits;
 * the egress guard judges the destination. A success only says that a socket is open: UDP does not tell who listens
 * (§3.1). `connect-ip` (RFC 9484) is not supported, because Node cannot open the network interface that it needs.
 */

import type { RemoteInfo } from 'node:dgram';
import { DialFailure } from '../../egress/dial-failure.ts';
import type { Request } from '../../http/message.ts';
import { type Problem, problemStatus } from '../../http/problem.ts';
import { problems } from '../../http/problem-registry.ts';
import {
  CapsuleReader,
  datagramHeadBytes,
  readVariableInteger,
  variableIntegerBytes,
  writeDatagramHead,
} from '../../http/syntax/capsule.ts';
import { trimWhitespace } from '../../http/syntax/field-value.ts';
import { parseUdpTarget } from '../../http/syntax/request-target.ts';
import { isHost } from '../../http/syntax/uri.ts';
import type { Observe, TunnelEnd } from '../../observe/observation.ts';
import { onEnd } from '../../observe/own-emitter.ts';
import type { Admission, Admitted } from '../admission.ts';
import type { Account } from '../budget.ts';
import { type Destination, toDestination } from '../destination.ts';
import { refusalOfFailure } from '../dial-destination.ts';
import type { OpenTunnel } from '../open-tunnels.ts';
import type { ClientSide, ProxyCall, ProxyReply } from '../proxy-call.ts';
import { type Refusal, refusalAnswer } from '../refusal.ts';
import { type ConnectedSocket, openUdpSocket, type UdpSocketOptions } from './open-socket.ts';

export type UdpOptions = UdpSocketOptions & {
  readonly admission: Admission;
  readonly limits: UdpTunnelLimits;
  readonly observe: Observe;
  readonly isForeign: (request: Request) => boolean;
};

/** RFC 9297 §3.4. The server adds what HTTP/1.1 needs for 101. */
const fields = ['Capsule-Protocol', '?1'];

export function createUdp(options: UdpOptions): (call: ProxyCall) => Promise<ProxyReply> {
  const { admission, limits, observe, monotonic } = options;

  return async (call) => {
    const { request } = call;
    const problem = handshakeProblem(request) ?? targetProblem(request, options.isForeign);
    const destination = destinationOf(request);
    if (problem !== undefined || destination === undefined) {
      return { refused: refuseMalformed(request, problem ?? offTemplate, observe) };
    }
    const decision = await admission(call, 'udp', destination);
    if (!decision.ok) return { refused: decision.refused };
    const { admitted } = decision;
    try {
      const socket = await openUdpSocket(options, admitted.destination, call.signal);
      if (!call.signal.aborted) return opened(admitted, socket, limits, monotonic);
      socket.socket.close();
    } catch (error) {
      if (!call.signal.aborted) return { refused: admitted.refuse(explain(error)) };
    }
    admitted.release();
    return { refused: { status: problemStatus('destination_failed'), fields: [], content: null } };
  };
}

function opened(
  admitted: Admitted,
  destination: ConnectedSocket,
  limits: UdpTunnelLimits,
  monotonic: () => number,
): ProxyReply {
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
        monotonic,
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
function targetProblem(request: Request, isForeign: UdpOptions['isForeign']): Problem | undefined {
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

/** Only a lookup can time out: UDP makes no connection. */
function explain(error: unknown): Refusal {
  const refusal = refusalOfFailure(error);
  const isLate = error instanceof DialFailure && error.kind === 'timeout';
  return isLate ? { ...refusal, error: 'dns_timeout' } : refusal;
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

type UdpTunnelLimits = {
  readonly tunnelUdpIdleMs: number;
  /** Octets that may wait for the client, and as many for the system. */
  readonly tunnelUdpBufferBytesMax: number;
};

type UdpTunnelOptions = {
  readonly client: ClientSide;
  readonly destination: ConnectedSocket;
  readonly limits: UdpTunnelLimits;
  readonly account: Account;
  readonly monotonic: () => number;
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
  readonly #monotonic: () => number;
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
    this.#monotonic = options.monotonic;
    this.#onEnd = options.onEnd;
    this.#passedMs = options.monotonic();
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
    this.#passedMs = this.#monotonic();
    if (!this.#account.spend(bytes)) this.end('bytes');
  }

  #judgeFailure(error: Error): void {
    const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
    if (!lossCodes.has(code)) this.end('destination-reset');
  }

  /** One timer, set anew when it ends and not with each datagram. */
  #watchIdle(waitMs: number): void {
    this.#idleTimer = setTimeout(() => {
      const restMs = this.#passedMs + this.#limits.tunnelUdpIdleMs - this.#monotonic();
      if (restMs > 0) this.#watchIdle(restMs);
      else this.end('idle');
    }, waitMs);
  }
}

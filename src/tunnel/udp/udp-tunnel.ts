/**
 * An open connect-udp tunnel (RFC 9298 §5): capsules of the client become datagrams to one address, datagrams from
 * there become capsules. Nothing is queued for a slow side: what does not fit is lost, as protocols over UDP expect.
 *
 * Modes: *open*, *closing* (the socket is gone, the client has yet to close), *closed*. Open ends when the client ends,
 * breaks or sends an invalid capsule, when the destination is unreachable (§3.1: the stream must close then), after an
 * idle time, or by a cut. Closing ends with the client's connection, by force after `closeMsMax`.
 */
import type { RemoteInfo } from 'node:dgram';
import {
  CapsuleReader,
  datagramHeadBytes,
  readVariableInteger,
  variableIntegerBytes,
  writeDatagramHead,
} from '../../http/syntax/capsule.ts';

import type { TunnelEnd } from '../../observe/observation.ts';
import { onEnd } from '../../observe/on-end.ts';
import type { Account } from '../budget.ts';
import type { ClientSide } from '../proxy-call.ts';
import type { ConnectedSocket } from './open-socket.ts';

export type UdpTunnelLimits = {
  readonly tunnelUdpIdleMs: number;
  /** Octets that may wait for the client, and as many for the system. */
  readonly tunnelUdpBufferBytesMax: number;
};

export type UdpTunnelOptions = {
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

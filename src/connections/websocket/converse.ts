/**
 * Turns a connection, over HTTP/2 a stream, into a WebSocket (§4.13, §9; RFC 6455, RFC 8441): writes the answer to the handshake, which was
 * judged before, and lets a Conversation speak. Everything after the answer is the same for both protocols.
 *
 * A server makes one fleet (createFleet in fleet.ts) for all its WebSockets and hands it to each call.
 */
import type { IncomingMessage } from 'node:http';
import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Duplex } from 'node:stream';
import type { Conversation } from '../../http/message.ts';
import type { MemoryLease } from '../../memory/budget.ts';
import type { Observe } from '../../observe/observation.ts';
import { agreeOnCompression, type Compression } from './agree-compression.ts';
import type { Fleet } from './fleet.ts';
import { switchingFields, switchingHead } from './handshake-answer.ts';
import { WebSocketWire } from './wire.ts';

export type WebSocketLimits = {
  readonly realtimePingMs: number;
  readonly realtimeMessageBytesMax: number;
  readonly realtimeBufferBytesMax: number;
  readonly realtimeCloseMs: number;
  /** Time without progress after which it is closed with 1013. */
  readonly answerStallTimeoutMs: number;
  readonly realtimeCompression: 'on' | 'off';
  readonly realtimeCompressionBytesMin: number;
};

export type OpenSocket = {
  /** Ends it with a status code of RFC 6455 §7.4 and a reason; within `realtimeCloseMs` it is gone. */
  close(code: number, reason: string): void;
  /** Cuts it at once. */
  terminate(): void;
  /** A look, now and then, whether its client takes what it is sent. @param nowMs on the monotonic clock */
  sweep(nowMs: number): void;
};

export type ConverseOptions = {
  readonly conversation: Conversation;
  /** Name, value ... of the answer, such as Date and API-Version; those of the connection and of framing are left out. */
  readonly fields: readonly string[];
  readonly peer: string;
  readonly limits: WebSocketLimits;
  readonly observe: Observe;
  /** Called once when it is gone, never before the call that opened it has returned. */
  readonly onClosed: () => void;
  /** What the WebSockets of a server share. */
  readonly fleet: Fleet;
  /** Of the server's memory budget; released when the WebSocket is gone. */
  readonly memory: MemoryLease;
};

/**
 * Answers 101 on the socket of an `upgrade` event.
 *
 * @param call.head octets that came with the request: the first frames
 */
export function converseHttp1(
  call: { readonly incoming: IncomingMessage; readonly socket: Duplex; readonly head: Uint8Array },
  options: ConverseOptions,
): OpenSocket {
  const { socket } = call;
  const { rawHeaders } = call.incoming;
  const compression = agreeOnCompression(rawHeaders, options.limits);
  // A socket of `upgrade` still has the timer of its server, and sends small frames when it likes.
  if ('setTimeout' in socket && typeof socket.setTimeout === 'function') socket.setTimeout(0);
  if ('setNoDelay' in socket && typeof socket.setNoDelay === 'function') socket.setNoDelay(true);
  const wire = makeWire({ stream: socket, cut: () => socket.destroy() }, compression, options);
  if (socket.writable) {
    const fields = switchingFields(options, compression);
    socket.write(switchingHead(rawHeaders, fields), 'latin1');
  }
  wire.open(options.conversation, call.head);
  return wire;
}

/** Answers 200 to an extended CONNECT (RFC 8441 §5). */
export function converseHttp2(
  call: { readonly stream: ServerHttp2Stream; readonly rawFields: readonly string[] },
  options: ConverseOptions,
): OpenSocket {
  const { stream } = call;
  const compression = agreeOnCompression(call.rawFields, options.limits);
  const cut = () => stream.close(constants.NGHTTP2_CANCEL);
  const wire = makeWire({ stream, cut }, compression, options);
  if (!stream.destroyed && !stream.closed) {
    stream.respond([':status', '200', ...switchingFields(options, compression)]);
  }
  wire.open(options.conversation, new Uint8Array());
  return wire;
}

function makeWire(
  transport: { readonly stream: Duplex; readonly cut: () => void },
  compression: Compression,
  options: ConverseOptions,
): WebSocketWire {
  const { fleet, limits, memory: lease, observe, onClosed, peer } = options;
  return new WebSocketWire({ ...transport, compression, limits, fleet, lease, observe, onClosed, peer });
}

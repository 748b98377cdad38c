/**
 * Turns a connection, over HTTP/2 a stream, into a WebSocket (§4.13, §9; RFC 6455, RFC 8441): writes the response to
 * the handshake, which the kernel has judged, and opens the Conversation. Then both protocols share everything.
 */

import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Duplex } from 'node:stream';
import type { Conversation } from '../../http/message.ts';
import { agreeOnCompression, type Compression } from './agree-compression.ts';
import { type ConverseOptions, WebSocketWire } from './websocket-wire.ts';

/**
 * Answers 101 on the socket of an `upgrade` event.
 * @param call.head octets after the request in the same read: the first frames
 */
export function converseHttp1(
  call: { readonly incoming: IncomingMessage; readonly socket: Duplex; readonly head: Uint8Array },
  options: ConverseOptions,
): WebSocketWire {
  const { socket } = call;
  const { rawHeaders } = call.incoming;
  const compression = agreeOnCompression(rawHeaders, options.limits);
  // A socket of `upgrade` still has the timer of its server, and Nagle's algorithm.
  if ('setTimeout' in socket && typeof socket.setTimeout === 'function') socket.setTimeout(0);
  if ('setNoDelay' in socket && typeof socket.setNoDelay === 'function') socket.setNoDelay(true);
  const wire = new WebSocketWire({ stream: socket, cut: () => socket.destroy() }, compression, options);
  if (socket.writable) {
    const fields = switchingFields(options, compression);
    socket.write(switchingHead(rawHeaders, fields), 'latin1');
  }
  wire.open(call.head);
  return wire;
}

/** Answers 200 to an extended CONNECT (RFC 8441 §5). */
export function converseHttp2(
  call: { readonly stream: ServerHttp2Stream; readonly rawFields: readonly string[] },
  options: ConverseOptions,
): WebSocketWire {
  const { stream } = call;
  const compression = agreeOnCompression(call.rawFields, options.limits);
  const cut = () => stream.close(constants.NGHTTP2_CANCEL);
  const wire = new WebSocketWire({ stream, cut }, compression, options);
  if (!stream.destroyed && !stream.closed) {
    const fields = switchingFields(options, compression);
    // A client of HTTP/2 sends no key (RFC 8441 §5). Envoy passes on that of a client of HTTP/1.1, and the answer to it.
    const key = keyOf(call.rawFields);
    const accept = key === '' ? [] : ['sec-websocket-accept', acceptOf(key)];
    stream.respond([':status', '200', ...fields, ...accept]);
  }
  wire.open(new Uint8Array());
  return wire;
}

/** RFC 6455 §1.3. */
const websocketGuid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Connection and framing fields, which mean nothing after a handshake and which HTTP/2 does not have, except one. */
const leftOut: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'content-type',
  'keep-alive',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'sec-websocket-protocol',
  'transfer-encoding',
  'upgrade',
]);

/**
 * The server's half of the opening handshake (RFC 6455 §4.2.2, RFC 8441 §5): the fields of the 101, and of the 200 over
 * HTTP/2.
 */
function switchingFields(
  answer: { readonly fields: readonly string[]; readonly conversation: Pick<Conversation, 'subprotocol'> },
  compression: Compression,
): readonly string[] {
  const fields: string[] = [];
  for (let index = 0; index + 1 < answer.fields.length; index += 2) {
    const name = answer.fields[index] ?? '';
    if (!leftOut.has(name.toLowerCase())) fields.push(name, answer.fields[index + 1] ?? '');
  }
  const { subprotocol } = answer.conversation;
  if (subprotocol !== undefined) fields.push('Sec-WebSocket-Protocol', subprotocol);
  if (compression.field !== undefined) fields.push('Sec-WebSocket-Extensions', compression.field);
  return fields;
}

function switchingHead(rawFields: readonly string[], fields: readonly string[]): string {
  const accept = acceptOf(keyOf(rawFields));
  let head = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n`;
  for (let index = 0; index + 1 < fields.length; index += 2) {
    head += `${fields[index]}: ${fields[index + 1]}\r\n`;
  }
  return `${head}\r\n`;
}

function acceptOf(key: string): string {
  return createHash('sha1')
    .update(key + websocketGuid)
    .digest('base64');
}

/** Over HTTP/1.1 the kernel has checked that it is there once; over HTTP/2 it is empty if it is absent. */
function keyOf(rawFields: readonly string[]): string {
  for (let index = 0; index + 1 < rawFields.length; index += 2) {
    if (rawFields[index]?.toLowerCase() === 'sec-websocket-key') return (rawFields[index + 1] ?? '').trim();
  }
  return '';
}

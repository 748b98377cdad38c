/**
 * The server's half of the opening handshake (RFC 6455 §4.2.2): the status line and fields of the 101, and the fields that the 200 over
 * HTTP/2 has as well (RFC 8441 §5). The client's half was judged before.
 */
import { createHash } from 'node:crypto';
import type { Conversation } from '../../http/message.ts';
import type { Compression } from './agree-compression.ts';

/** RFC 6455 §1.3. */
const websocketGuid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** A field of the connection or of framing says nothing about what follows a handshake, and HTTP/2 knows none of them but one. */
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

/** Name, value ... for either protocol; names in the case that they came in. */
export function switchingFields(
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

/** The whole header section of the 101, for one write. */
export function switchingHead(rawFields: readonly string[], fields: readonly string[]): string {
  const accept = createHash('sha1')
    .update(keyOf(rawFields) + websocketGuid)
    .digest('base64');
  let head = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n`;
  for (let index = 0; index + 1 < fields.length; index += 2) {
    head += `${fields[index]}: ${fields[index + 1]}\r\n`;
  }
  return `${head}\r\n`;
}

/** It came once, which the kernel has seen to. */
function keyOf(rawFields: readonly string[]): string {
  for (let index = 0; index + 1 < rawFields.length; index += 2) {
    if (rawFields[index]?.toLowerCase() === 'sec-websocket-key') return (rawFields[index + 1] ?? '').trim();
  }
  return '';
}

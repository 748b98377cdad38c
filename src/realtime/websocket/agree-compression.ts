/**
 * Negotiates permessage-deflate (RFC 7692 §5, §7.1) without context takeover in either direction: an idle WebSocket
 * keeps no window, and a message to many is compressed once. An unacceptable offer is skipped for the next one; a
 * malformed field fails the WebSocket (RFC 6455 §9.1).
 */

import { constants, inflateRawSync } from 'node:zlib';
import { extension, type MessageInflater, PerMessageDeflate } from './frames.ts';

export type Compression = {
  /** Sec-WebSocket-Extensions of the response; undefined: not agreed. */
  readonly field: string | undefined;
  /** Window for sent messages, as a power of two in octets; undefined: messages are sent uncompressed. */
  readonly sentWindowBits: number | undefined;
  readonly complaint: string | undefined;
};

const extensionName = 'permessage-deflate';
const windowBitsMax = 15;
/** zlib has no raw deflate for a window of 256 octets: it takes the next size, which the client could not read. */
const windowBitsMin = 9;

export function agreeOnCompression(
  rawFields: readonly string[],
  settings: { readonly realtimeCompression: 'on' | 'off' },
): Compression {
  const offered = extensionsOf(rawFields);
  if (offered === '') return uncompressed;
  let offers: readonly object[];
  try {
    offers = extension.parse(offered)[extensionName] ?? [];
  } catch {
    return { ...uncompressed, complaint: 'Sec-WebSocket-Extensions is malformed' };
  }
  if (settings.realtimeCompression === 'off') return uncompressed;
  for (const offer of offers) {
    const agreed = accept(offer);
    if (agreed !== undefined) return agreed;
  }
  return uncompressed;
}

const uncompressed: Compression = { field: undefined, sentWindowBits: undefined, complaint: undefined };

function accept(offer: object): Compression | undefined {
  try {
    const parameters = new PerMessageDeflate({
      isServer: true,
      serverNoContextTakeover: true,
      clientNoContextTakeover: true,
    }).accept([offer]);
    const bits = parameters.server_max_window_bits ?? windowBitsMax;
    if (typeof bits !== 'number' || bits < windowBitsMin) return undefined;
    const field = extension.format({ [extensionName]: [parameters] });
    return { field, sentWindowBits: bits, complaint: undefined };
  } catch {
    // A parameter that is unknown, repeated or out of bounds declines the offer (RFC 7692 §5.1).
    return undefined;
  }
}

/** All lines of the field as one list (RFC 6455 §9.1). */
function extensionsOf(rawFields: readonly string[]): string {
  let list = '';
  for (let index = 0; index + 1 < rawFields.length; index += 2) {
    if (rawFields[index]?.toLowerCase() !== 'sec-websocket-extensions') continue;
    const value = (rawFields[index + 1] ?? '').trim();
    list = list === '' ? value : `${list}, ${value}`;
  }
  return list;
}

/** A sync flush ends in these four octets, which the sender leaves out (RFC 7692 §7.2.1). */
const flushTail = Uint8Array.of(0x00, 0x00, 0xff, 0xff);

/**
 * Inflates compressed messages (RFC 7692 §7.2.2), each on its own: no inflater is kept between messages. `ws` keeps an
 * inflater and a deflater for each socket that used them: 250 KB of resident memory (measured), against 12 KB here.
 *
 * It inflates on the calling thread within the turn: 0.3 ms for a message of the default limit, the longest.
 *
 * Errors: `ERR_BUFFER_TOO_LARGE` for a message over `messageBytesMax`, zlib's own for invalid data.
 */
export function createMessageInflater(messageBytesMax: number): MessageInflater {
  let parts: Buffer[] = [];
  return {
    decompress(data, fin, callback) {
      parts.push(data);
      if (!fin) {
        queueMicrotask(() => callback(null, Buffer.alloc(0)));
        return;
      }
      const message = Buffer.concat([...parts, flushTail]);
      parts = [];
      queueMicrotask(() => inflate(message, messageBytesMax, callback));
    },
  };
}

function inflate(
  message: Buffer,
  messageBytesMax: number,
  callback: (error: Error | null, data?: Buffer) => void,
): void {
  let text: Buffer;
  try {
    text = inflateRawSync(message, {
      finishFlush: constants.Z_SYNC_FLUSH,
      maxOutputLength: messageBytesMax,
    });
  } catch (error) {
    callback(error instanceof Error ? error : new Error(String(error)));
    return;
  }
  callback(null, text);
}

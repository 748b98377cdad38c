/**
 * What is agreed with a client about permessage-deflate (RFC 7692 §5, §7.1). No context outlives a message in either direction: so an idle
 * WebSocket keeps no window, and a message that goes to many is compressed once. An offer that cannot be taken is passed over, the next is
 * looked at; a field that is no list of extensions fails the WebSocket (RFC 6455 §9.1).
 */
import { extension, PerMessageDeflate } from './ws-parts.ts';

export type Compression = {
  /** Sec-WebSocket-Extensions of the answer; undefined: none is agreed. */
  readonly field: string | undefined;
  /** Window for what is sent, as a power of two in octets; undefined: messages are sent as they are. */
  readonly sentWindowBits: number | undefined;
  /** Why the WebSocket is to be failed. */
  readonly complaint: string | undefined;
};

const extensionName = 'permessage-deflate';
const windowBitsMax = 15;
/** zlib makes no raw deflate stream for a window of 256 octets: it takes the next size, which the client could not read. */
const windowBitsMin = 9;

export function agreeOnCompression(
  rawFields: readonly string[],
  settings: { readonly realtimeCompression: 'on' | 'off' },
): Compression {
  const asked = extensionsOf(rawFields);
  if (asked === '') return uncompressed;
  let offers: readonly object[];
  try {
    offers = extension.parse(asked)[extensionName] ?? [];
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
    // A parameter that is unknown, repeated or out of bounds: the offer is declined (RFC 7692 §5.1).
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

/**
 * The octets at the start of an HTTP/2 connection (RFC 9113 §3.4, §4.1): reads the preface and the first frame of a client, and writes the
 * ones that a connection is to believe it received instead, with the upgraded request as stream 1.
 */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const frameHeadBytes = 9;
/** SETTINGS_MAX_FRAME_SIZE as it is before anybody says otherwise. */
const framePayloadBytesMax = 16_384;
const settingBytes = 6;

const frameType = { data: 0x0, headers: 0x1, settings: 0x4, continuation: 0x9 } as const;
const flag = { none: 0x0, endStream: 0x1, ack: 0x1, endHeaders: 0x4 } as const;

export type FirstFrames =
  | { readonly kind: 'more' }
  | { readonly kind: 'wrong'; readonly why: string }
  /** `settings`: payload of the first frame; `rest`: what came after it. */
  | { readonly kind: 'read'; readonly settings: Uint8Array; readonly rest: Uint8Array };

export function readFirstFrames(octets: Uint8Array): FirstFrames {
  const known = Math.min(octets.length, preface.length);
  for (let index = 0; index < known; index += 1) {
    if (octets[index] !== preface[index]) return { kind: 'wrong', why: 'no connection preface came' };
  }
  if (octets.length < preface.length + frameHeadBytes) return { kind: 'more' };
  const head = octets.subarray(preface.length, preface.length + frameHeadBytes);
  const length = ((head[0] ?? 0) << 16) | ((head[1] ?? 0) << 8) | (head[2] ?? 0);
  const onConnection = head.subarray(5).every((octet, index) => (index === 0 ? octet & 0x7f : octet) === 0);
  const isSettings = head[3] === frameType.settings && ((head[4] ?? 0) & flag.ack) === 0 && onConnection;
  if (!isSettings || length % settingBytes !== 0 || length > framePayloadBytesMax) {
    return { kind: 'wrong', why: 'the preface did not go on with SETTINGS' };
  }
  const start = preface.length + frameHeadBytes;
  if (octets.length < start + length) return { kind: 'more' };
  return {
    kind: 'read',
    settings: octets.subarray(start, start + length),
    rest: octets.subarray(start + length),
  };
}

/** Preface, one SETTINGS, and the request as stream 1 with its end. */
export function writeFirstFrames(settings: Uint8Array, block: Uint8Array, content: Uint8Array): Buffer {
  const parts: Uint8Array[] = [preface, frame(frameType.settings, flag.none, 0, settings)];
  const blocks = split(block);
  blocks.forEach((piece, index) => {
    const last = index === blocks.length - 1 ? flag.endHeaders : flag.none;
    const end = index === 0 && content.length === 0 ? flag.endStream : flag.none;
    parts.push(frame(index === 0 ? frameType.headers : frameType.continuation, last | end, 1, piece));
  });
  if (content.length > 0) {
    const pieces = split(content);
    pieces.forEach((piece, index) => {
      parts.push(frame(frameType.data, index === pieces.length - 1 ? flag.endStream : flag.none, 1, piece));
    });
  }
  return Buffer.concat(parts);
}

function split(octets: Uint8Array): readonly Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < octets.length; at += framePayloadBytesMax) {
    pieces.push(octets.subarray(at, at + framePayloadBytesMax));
  }
  return pieces;
}

function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const octets = Buffer.allocUnsafe(frameHeadBytes + payload.length);
  octets.writeUIntBE(payload.length, 0, 3);
  octets[3] = type;
  octets[4] = flags;
  octets.writeUInt32BE(stream, 5);
  octets.set(payload, frameHeadBytes);
  return octets;
}

/**
 * Frames of HTTP/2 as octets (RFC 9113 §4.1), so that a judge can send what no library sends. Header blocks are literals that no table keeps
 * (RFC 7541 §6.2.2).
 */
export type Frame = {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
};

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const endStream = 0x1;
export const ack = 0x1;
export const endHeaders = 0x4;
export const padded = 0x8;
export const prioritized = 0x20;

/** RFC 9113 §7. */
export const errorCodes = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
} as const;

export const http2Preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
export const frameHeadBytes = 9;

export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** The whole frames of the octets, and what is none yet. */
export function readFrames(octets: Buffer): { readonly frames: readonly Frame[]; readonly rest: Buffer } {
  const frames: Frame[] = [];
  let rest = octets;
  while (rest.length >= frameHeadBytes) {
    const end = frameHeadBytes + rest.readUIntBE(0, 3);
    if (rest.length < end) break;
    frames.push({
      type: rest.readUInt8(3),
      flags: rest.readUInt8(4),
      stream: rest.readUInt32BE(5) & 0x7fffffff,
      payload: rest.subarray(frameHeadBytes, end),
    });
    rest = rest.subarray(end);
  }
  return { frames, rest };
}

export type HeaderFields = readonly (readonly [name: string, value: string])[];

export function headerBlock(fields: HeaderFields): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

export function setting(id: number, value: number): Buffer {
  const entry = Buffer.alloc(6);
  entry.writeUInt16BE(id, 0);
  entry.writeUInt32BE(value, 2);
  return entry;
}

export function uint32(value: number): Buffer {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(value);
  return octets;
}

function text(value: string): Buffer {
  const octets = Buffer.from(value, 'latin1');
  return Buffer.concat([length(octets.length), octets]);
}

/** RFC 7541 §5.1, with a prefix of seven bits; without Huffman coding. */
function length(value: number): Buffer {
  if (value < 127) return Buffer.from([value]);
  const octets = [127];
  let rest = value - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) octets.push((rest % 128) + 128);
  octets.push(rest);
  return Buffer.from(octets);
}

/** The statuses of the static table, from its index 8 on (RFC 7541 Appendix A). */
const tabledStatuses = [200, 204, 206, 304, 400, 404, 500];

/**
 * The status of the first answer on a connection: the first field of its block (RFC 9113 §8.3), which names nothing of the dynamic table.
 * @returns undefined where it is none
 */
export function firstStatus(block: Buffer): number | undefined {
  let at = 0;
  // Changes of the size of the table come before the first field (RFC 7541 §4.2).
  while (((block[at] ?? 0) & 0xe0) === 0x20) at = integerEnd(block, at, 0x1f);
  const first = block[at] ?? 0;
  if (first >= 0x80) return tabledStatuses[(first & 0x7f) - 8];
  const index = first & (first >= 0x40 ? 0x3f : 0x0f);
  at += 1;
  // A name in full, which is `:status`.
  if (index === 0) at += 1 + ((block[at] ?? 0) & 0x7f);
  const isCoded = (block[at] ?? 0) >= 0x80;
  const value = block.subarray(at + 1, at + 1 + ((block[at] ?? 0) & 0x7f));
  const digits = isCoded ? codedDigits(value) : value.toString('latin1');
  return /^\d{3}$/.test(digits) ? Number(digits) : undefined;
}

function integerEnd(block: Buffer, start: number, prefix: number): number {
  let at = start;
  if (((block[at] ?? 0) & prefix) < prefix) return at + 1;
  do at += 1;
  while ((block[at] ?? 0) >= 0x80);
  return at + 1;
}

/** Digits in Huffman coding: 0 to 2 have five bits, the others six (RFC 7541 Appendix B). */
function codedDigits(octets: Buffer): string {
  let bits = [...octets].map((octet) => octet.toString(2).padStart(8, '0')).join('');
  let digits = '';
  while (digits.length < 3) {
    const long = Number.parseInt(bits.slice(0, 6), 2) - 0b011001 + 3;
    const short = Number.parseInt(bits.slice(0, 5), 2);
    if (short <= 2) digits += short;
    else if (long >= 3 && long <= 9) digits += long;
    else return '';
    bits = bits.slice(short <= 2 ? 5 : 6);
  }
  return digits;
}

/**
 * A client of HTTP/2 over cleartext that sends frames as given (RFC 9113 §4.1) and keeps those that come, so that a test sees
 * exactly what is on the wire. Header blocks are literals without indexing (RFC 7541 §6.2.2): neither side's tables change.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

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
export const endHeaders = 0x4;
export const ack = 0x1;

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const headBytes = 9;
const deadlineMs = 10_000;

export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** @param fields name, value, name, value ... */
export function headerBlock(fields: readonly string[]): Buffer {
  const parts: Buffer[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    parts.push(Buffer.from([0]), text(fields[index] ?? ''), text(fields[index + 1] ?? ''));
  }
  return Buffer.concat(parts);
}

/** A header section in one frame; frames of the usual size bound it to 16,384 octets. */
export function request(stream: number, fields: readonly string[], flags = endStream | endHeaders): Buffer {
  return frame(frameTypes.headers, flags, stream, headerBlock(fields));
}

export function get(path: string, more: readonly string[] = []): readonly string[] {
  return [':method', 'GET', ':scheme', 'http', ':authority', 'a', ':path', path, ...more];
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

export class RawSession {
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  /** Resolves when the server has closed its side, or the connection broke. */
  readonly closed: Promise<void>;
  #buffer = Buffer.alloc(0);
  #ended = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', () => socket.destroy());
    this.closed = new Promise((resolve) => {
      const onEnd = () => {
        this.#ended = true;
        resolve();
      };
      socket.on('end', onEnd);
      socket.on('close', onEnd);
    });
  }

  /** The preface and an empty SETTINGS, or the entries given. */
  start(settings: Uint8Array = Buffer.alloc(0)): this {
    return this.send(preface, frame(frameTypes.settings, 0, 0, settings));
  }

  send(...octets: readonly Uint8Array[]): this {
    if (!this.socket.destroyed) this.socket.write(Buffer.concat(octets));
    return this;
  }

  /** The first frame of the type, on the stream where one is given, that came or comes. */
  async frame(type: number, stream?: number): Promise<Frame> {
    const signal = AbortSignal.timeout(deadlineMs);
    for (;;) {
      const found = this.frames.find(
        (each) => each.type === type && (stream === undefined || each.stream === stream),
      );
      if (found !== undefined) return found;
      if (this.#ended) throw new Error(`the connection ended after ${JSON.stringify(this.summary())}`);
      await Promise.race([once(this.socket, 'data', { signal }), this.closed]);
    }
  }

  /** The error code of the RST_STREAM that the stream ends with. */
  async resetCode(stream: number): Promise<number> {
    return (await this.frame(frameTypes.rstStream, stream)).payload.readUInt32BE(0);
  }

  async goawayCode(): Promise<number> {
    return (await this.frame(frameTypes.goaway)).payload.readUInt32BE(4);
  }

  summary(): readonly (readonly number[])[] {
    return this.frames.map(({ type, flags, stream }) => [type, flags, stream]);
  }

  #read(chunk: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, chunk]);
    while (this.#buffer.length >= headBytes) {
      const end = headBytes + this.#buffer.readUIntBE(0, 3);
      if (this.#buffer.length < end) return;
      this.frames.push({
        type: this.#buffer.readUInt8(3),
        flags: this.#buffer.readUInt8(4),
        stream: this.#buffer.readUInt32BE(5) & 0x7fffffff,
        payload: this.#buffer.subarray(headBytes, end),
      });
      this.#buffer = this.#buffer.subarray(end);
    }
  }
}

export async function openRawSession(port: number): Promise<RawSession> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
  await once(socket, 'connect');
  return new RawSession(socket);
}

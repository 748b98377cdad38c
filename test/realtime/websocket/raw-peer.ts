/** A client that sends any octets after the handshake and shows each frame that comes back, over HTTP/1.1 or by an extended CONNECT. */
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { EchoServer, Protocol } from './echo-server.ts';

export type Frame = {
  readonly opcode: number;
  readonly fin: boolean;
  readonly rsv1: boolean;
  readonly payload: Buffer;
};

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const maskKey = Uint8Array.of(0x37, 0xfa, 0x21, 0x3d);

/** A frame as a client sends it; `rsv` as the three bits, `masked` false for the frame that no client may send. */
export function clientFrame(
  opcode: number,
  content: string | Uint8Array = '',
  { fin = true, rsv = 0, masked = true }: { fin?: boolean; rsv?: number; masked?: boolean } = {},
): Buffer {
  const payload = Buffer.from(content as string);
  const { length } = payload;
  const extended = length > 65_535 ? 8 : length > 125 ? 2 : 0;
  const head = Buffer.alloc(2 + extended);
  head[0] = (fin ? 0x80 : 0) | (rsv << 4) | opcode;
  head[1] = (masked ? 0x80 : 0) | (extended === 8 ? 127 : extended === 2 ? 126 : length);
  if (extended === 2) head.writeUInt16BE(length, 2);
  if (extended === 8) head.writeBigUInt64BE(BigInt(length), 2);
  if (!masked) return Buffer.concat([head, payload]);
  for (let index = 0; index < length; index += 1)
    payload[index] = (payload[index] ?? 0) ^ (maskKey[index % 4] ?? 0);
  return Buffer.concat([head, maskKey, payload]);
}

/** A Close frame with this code and reason. */
export function clientClose(code: number, reason: string | Uint8Array = ''): Buffer {
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code);
  return clientFrame(opcodes.close, Buffer.concat([payload, Buffer.from(reason as string)]));
}

export class RawPeer {
  /** Status, and fields in lower case. */
  readonly status: number;
  readonly fields: ReadonlyMap<string, string>;
  readonly stream: Duplex;
  /** How the server's side ended: FIN or END_STREAM, or a reset. */
  readonly ended: Promise<'end' | 'reset'>;
  readonly #release: () => void;
  readonly #frames: Frame[] = [];
  #unread: Buffer[] = [];
  /** Octets that are there, and those that the next frame needs. */
  #there = 0;
  #needed = 2;
  #over = false;
  #wake: (() => void) | undefined;

  private constructor(
    answer: { status: number; fields: ReadonlyMap<string, string>; rest: Buffer },
    stream: Duplex,
    release: () => void,
  ) {
    this.status = answer.status;
    this.fields = answer.fields;
    this.stream = stream;
    this.#release = release;
    this.#take(answer.rest);
    stream.on('data', (chunk: Buffer) => this.#take(chunk));
    this.ended = new Promise((resolve) => {
      const finish = (how: 'end' | 'reset') => {
        this.#over = true;
        this.#wake?.();
        resolve(how);
      };
      stream.on('end', () => finish((stream as { rstCode?: number }).rstCode ? 'reset' : 'end'));
      stream.on('error', () => finish('reset'));
      stream.on('close', () => finish('reset'));
    });
  }

  /** @param head octets in the packet of the handshake, over HTTP/1.1 */
  static async open(
    protocol: Protocol,
    server: EchoServer,
    fields: readonly string[] = [],
    head: Uint8Array = new Uint8Array(),
  ): Promise<RawPeer> {
    return protocol === 'HTTP/1.1'
      ? await openHttp1(server.port(protocol), fields, head, RawPeer.#make)
      : await openHttp2(server.port(protocol), fields, RawPeer.#make);
  }

  static readonly #make: Make = (answer, stream, release) => new RawPeer(answer, stream, release);

  write(...octets: Uint8Array[]): void {
    this.stream.write(Buffer.concat(octets));
  }

  /** The next frame; undefined: the server's side ended. */
  async frame(): Promise<Frame | undefined> {
    for (;;) {
      const frame = this.#frames.shift();
      if (frame !== undefined || this.#over) return frame;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** The text of the next frame. */
  async text(): Promise<string | undefined> {
    return (await this.frame())?.payload.toString();
  }

  /** Code and reason of the Close frame that comes, whatever comes before; undefined: none came. */
  async closeFrame(): Promise<{ code: number; reason: string } | undefined> {
    for (;;) {
      const frame = await this.frame();
      if (frame === undefined) return undefined;
      if (frame.opcode !== opcodes.close) continue;
      const { payload } = frame;
      if (payload.length === 0) return { code: 1005, reason: '' };
      return { code: payload.readUInt16BE(0), reason: payload.subarray(2).toString() };
    }
  }

  end(): void {
    this.stream.end();
  }

  /** RST, or RST_STREAM. */
  reset(): void {
    const stream = this.stream as Duplex & { resetAndDestroy?: () => void; close?: (code: number) => void };
    if (stream.resetAndDestroy === undefined) stream.close?.(8);
    else stream.resetAndDestroy();
  }

  /** Gives back what the test holds; needed over HTTP/2, where the connection outlives the stream. */
  release(): void {
    this.stream.destroy();
    this.#release();
  }

  #take(chunk: Buffer): void {
    this.#unread.push(chunk);
    this.#there += chunk.length;
    if (this.#there < this.#needed) return;
    let octets = Buffer.concat(this.#unread);
    let end = endOfFrame(octets);
    for (; end <= octets.length; end = endOfFrame(octets)) {
      this.#frames.push(readFrame(octets.subarray(0, end)));
      octets = octets.subarray(end);
    }
    this.#unread = [octets];
    this.#there = octets.length;
    this.#needed = end;
    this.#wake?.();
  }
}

/** Octets of the frame that begins here, or of what tells its length where that has not come whole. */
function endOfFrame(octets: Buffer): number {
  const start = startOfPayload(octets);
  if (octets.length < start) return start;
  const length = octets[1] ?? 0;
  if (start === 2) return start + length;
  return start + (length === 127 ? Number(octets.readBigUInt64BE(2)) : octets.readUInt16BE(2));
}

function startOfPayload([, length = 0]: Buffer): number {
  return length === 127 ? 10 : length === 126 ? 4 : 2;
}

function readFrame(octets: Buffer): Frame {
  const [first = 0] = octets;
  const payload = octets.subarray(startOfPayload(octets));
  return { opcode: first & 15, fin: (first & 0x80) !== 0, rsv1: (first & 0x40) !== 0, payload };
}

type Make = (
  answer: { status: number; fields: ReadonlyMap<string, string>; rest: Buffer },
  stream: Duplex,
  release: () => void,
) => RawPeer;

async function openHttp1(
  port: number,
  fields: readonly string[],
  first: Uint8Array,
  make: Make,
): Promise<RawPeer> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let head = 'GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n';
  head += 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
  for (let index = 0; index < fields.length; index += 2) head += `${fields[index]}: ${fields[index + 1]}\r\n`;
  socket.write(Buffer.concat([Buffer.from(`${head}\r\n`), first]));
  let octets = Buffer.alloc(0);
  let end = -1;
  while (end < 0) {
    const chunk = await new Promise<Buffer>((resolve, reject) => {
      socket.once('data', resolve).once('error', reject);
    });
    socket.removeAllListeners('error');
    octets = Buffer.concat([octets, chunk]);
    end = octets.indexOf('\r\n\r\n');
  }
  const [line = '', ...lines] = octets.subarray(0, end).toString('latin1').split('\r\n');
  const got = new Map(
    lines.map((field) => {
      const colon = field.indexOf(':');
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()] as const;
    }),
  );
  const answer = { status: Number(line.split(' ')[1]), fields: got, rest: octets.subarray(end + 4) };
  return make(answer, socket, () => undefined);
}

async function openHttp2(port: number, fields: readonly string[], make: Make): Promise<RawPeer> {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  await new Promise<void>((resolve) => session.once('remoteSettings', () => resolve()));
  const headers: Record<string, string> = {
    ':method': 'CONNECT',
    ':protocol': 'websocket',
    ':scheme': 'http',
    ':path': '/',
    ':authority': 'a',
    'sec-websocket-version': '13',
  };
  for (let index = 0; index < fields.length; index += 2)
    headers[(fields[index] ?? '').toLowerCase()] = fields[index + 1] ?? '';
  const stream = session.request(headers, { endStream: false });
  const got = await new Promise<Record<string, unknown>>((resolve, reject) => {
    stream.once('response', resolve).once('error', reject);
  });
  const answer = {
    status: Number(got[':status']),
    fields: new Map(Object.entries(got).map(([name, value]) => [name, String(value)])),
    rest: Buffer.alloc(0),
  };
  return make(answer, stream, () => session.destroy());
}

/**
 * A client of HTTP/2 over cleartext that sends frames as given (RFC 9113 §4.1) and keeps those that come, so that a test sees
 * exactly what is on the wire. Header blocks are literals without indexing (RFC 7541 §6.2.2): neither side's tables change.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import {
  headerBlock as blockOf,
  endHeaders,
  endStream,
  type Frame,
  frame,
  frameTypes,
  http2Preface,
  readFrames,
} from '../../../conduct/frames.ts';

const deadlineMs = 10_000;

/** @param fields name, value, name, value ... */
export function headerBlock(fields: readonly string[]): Buffer {
  const names = fields.filter((_, index) => index % 2 === 0);
  return blockOf(names.map((name, index) => [name, fields[2 * index + 1] ?? ''] as const));
}

/** A header section in one frame; frames of the usual size bound it to 16,384 octets. */
export function request(stream: number, fields: readonly string[], flags = endStream | endHeaders): Buffer {
  return frame(frameTypes.headers, flags, stream, headerBlock(fields));
}

export function get(path: string, more: readonly string[] = []): readonly string[] {
  return [':method', 'GET', ':scheme', 'http', ':authority', 'a', ':path', path, ...more];
}

export class RawSession {
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  /** Resolves when the server has closed its side, or the connection broke. */
  readonly closed: Promise<void>;
  #buffer: Buffer = Buffer.alloc(0);
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
    return this.send(Buffer.from(http2Preface), frame(frameTypes.settings, 0, 0, settings));
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
    const { frames, rest } = readFrames(Buffer.concat([this.#buffer, chunk]));
    this.frames.push(...frames);
    this.#buffer = rest;
  }
}

export async function openRawSession(port: number): Promise<RawSession> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
  await once(socket, 'connect');
  return new RawSession(socket);
}

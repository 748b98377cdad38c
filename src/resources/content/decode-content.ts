/**
 * Undoes `Content-Encoding` (RFC 9110 §8.4): gzip, deflate, br and zstd, several of them in any order.
 *
 * `deflate` is the zlib format that RFC 9110 §8.4.1.2 names; the raw form that some old clients send is refused.
 * zstd windows end at 8 MiB (RFC 9659). Gzip members and zstd frames may follow each other; anything else after
 * the end of a stream is refused, so that no octet of a request goes unread.
 */
import {
  brotliDecompress,
  brotliDecompressSync,
  constants,
  gunzip,
  gunzipSync,
  inflate,
  inflateSync,
  zstdDecompress,
  zstdDecompressSync,
} from 'node:zlib';
import type { RequestMemory } from '../../http/message.ts';
import type { MaybePromise } from '../../store/store.ts';

/** The codings that requests may use, for Accept-Encoding beside 415. */
export const contentCodings: readonly string[] = ['gzip', 'deflate', 'br', 'zstd'];

/** More codings in one request than this are refused: no client needs two, and each costs a pass. */
export const contentCodingsMax = 4;

/** Longer content is decoded on the thread pool; for shorter content the trip there costs more than the work. */
const inlineBytesMax = 8 * 1024;
/** Short content that grows beyond this leaves the event loop too (a brotli bomb of 8 KiB makes gigabytes). */
const inlineDecodedBytesMax = 64 * 1024;
const decodedChunkBytes = 64 * 1024;
const zstdWindowLogMax = 23;

export type DecodeBounds = {
  /** Octets that come out of each step. */
  readonly bytesMax: number;
  /** Counts what is decoded beside the event loop, where any number may be under way. */
  readonly memory?: Pick<RequestMemory, 'hold' | 'giveBack'> | undefined;
};

/** The decoded octets, or the code of the refusal. */
export type Decoded =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | {
      readonly ok: false;
      readonly code: 'content_too_large' | 'content_malformed' | 'content_coding_unsupported' | 'unavailable';
    };

type Options = {
  info: boolean;
  maxOutputLength: number;
  chunkSize: number;
  params?: Record<number, number>;
};
type Callback = (error: Error | null, result: Buffer) => void;
type Coding = {
  readonly params?: Record<number, number>;
  readonly inline: (bytes: Uint8Array, options: Options) => Buffer;
  readonly pooled: (bytes: Uint8Array, options: Options, callback: Callback) => void;
};

/** With the option `info`, zlib answers with the engine besides, which knows how much of the input it took. */
type Informed = { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } };

const codingTable: ReadonlyMap<string, Coding> = new Map<string, Coding>([
  ['gzip', { inline: gunzipSync, pooled: gunzip }],
  ['deflate', { inline: inflateSync, pooled: inflate }],
  ['br', { inline: brotliDecompressSync, pooled: brotliDecompress }],
  [
    'zstd',
    {
      inline: zstdDecompressSync,
      pooled: zstdDecompress,
      params: { [constants.ZSTD_d_windowLogMax]: zstdWindowLogMax },
    },
  ],
]);

/**
 * Decodes content that was coded with `codings` in that order (as `parseContentCoding` gives them).
 * At most `bytesMax` octets come out of each step; a bomb stops there, with `content_too_large`.
 * Empty content stays empty whatever its coding. Answers at once for short content, else on the thread pool, where the most that may
 * come out is counted until it is known what has.
 */
export function decodeContent(
  bytes: Uint8Array,
  codings: readonly string[],
  bounds: DecodeBounds,
): MaybePromise<Decoded> {
  if (codings.length === 0 || bytes.length === 0) return { ok: true, bytes };
  const steps: Coding[] = [];
  for (const name of codings) {
    if (name === 'identity') continue;
    const coding = codingTable.get(name);
    if (coding === undefined || steps.length === contentCodingsMax) {
      return { ok: false, code: 'content_coding_unsupported' };
    }
    steps.push(coding);
  }
  return undo(bytes, steps, bounds);
}

/** Undoes the last coding, then the rest. */
function undo(bytes: Uint8Array, steps: readonly Coding[], bounds: DecodeBounds): MaybePromise<Decoded> {
  const coding = steps.at(-1);
  if (coding === undefined) return { ok: true, bytes };
  const rest = steps.slice(0, -1);
  const decoded = undoOne(bytes, coding, bounds);
  if (decoded instanceof Promise) {
    return decoded.then((result) => (result.ok ? undo(result.bytes, rest, bounds) : result));
  }
  return decoded.ok ? undo(decoded.bytes, rest, bounds) : decoded;
}

function undoOne(
  bytes: Uint8Array,
  coding: Coding,
  { bytesMax, memory }: DecodeBounds,
): MaybePromise<Decoded> {
  if (bytes.length <= inlineBytesMax) {
    const inlineMax = Math.min(bytesMax, inlineDecodedBytesMax);
    const decoded = undoInline(bytes, coding, inlineMax);
    if (decoded.ok || decoded.code !== 'content_too_large' || inlineMax === bytesMax) return decoded;
  }
  if (memory?.hold(bytesMax) === false) return { ok: false, code: 'unavailable' };
  return new Promise((resolve) => {
    coding.pooled(bytes, optionsOf(coding, bytesMax), (error, result) => {
      const decoded = error === null ? accept(result, bytes.length) : refuse(error);
      memory?.giveBack(decoded.ok ? bytesMax - decoded.bytes.length : bytesMax);
      resolve(decoded);
    });
  });
}

function undoInline(bytes: Uint8Array, coding: Coding, bytesMax: number): Decoded {
  try {
    return accept(coding.inline(bytes, optionsOf(coding, bytesMax)), bytes.length);
  } catch (error) {
    return refuse(error);
  }
}

function optionsOf(coding: Coding, bytesMax: number): Options {
  const chunkSize = Math.max(1024, Math.min(decodedChunkBytes, bytesMax));
  const options = { info: true, maxOutputLength: Math.max(1, bytesMax), chunkSize };
  return coding.params === undefined ? options : { ...options, params: coding.params };
}

/** Refuses what stands after the end of the stream, which the engines of Node pass over. */
function accept(result: unknown, bytesLength: number): Decoded {
  const { buffer, engine } = result as Informed;
  if (engine.bytesWritten !== bytesLength) return { ok: false, code: 'content_malformed' };
  return { ok: true, bytes: buffer };
}

function refuse(error: unknown): Decoded {
  const tooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
  return { ok: false, code: tooLarge ? 'content_too_large' : 'content_malformed' };
}

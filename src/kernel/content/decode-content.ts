/**
 * Undoes `Content-Encoding` (RFC 9110 §8.4): gzip, deflate, br and zstd, several of them in any order. `deflate` is the
 * zlib format (RFC 9110 §8.4.1.2); the raw form that some old clients send is refused. zstd windows end at 8 MiB (RFC
 * 9659). Gzip members and zstd frames may follow each other; other octets after the end of a stream are refused, so
 * that no octet of a request goes unread.
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

/** The accepted codings, for Accept-Encoding in a 415. */
export const contentCodings: readonly string[] = ['gzip', 'deflate', 'br', 'zstd'];

/** No client needs more than two, and each costs a pass. */
export const contentCodingsMax = 4;

/** Longer content is decoded on the thread pool; below this the transfer costs more than the work. */
const inlineBytesMax = 8 * 1024;
/** Short content that grows beyond this also goes to the thread pool (a brotli bomb of 8 KiB decodes to gigabytes). */
const inlineDecodedBytesMax = 64 * 1024;
const decodedChunkBytes = 64 * 1024;
const zstdWindowLogMax = 23;

export type DecodeBounds = {
  readonly bytesMax: number;
  /** Counts octets decoded on the thread pool, where any number of requests may be decoded at once. */
  readonly memory?: Pick<RequestMemory, 'hold' | 'giveBack'> | undefined;
};

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

/** The result of zlib with the option `info`; the engine knows how much of the input it read. */
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
 * Decodes content that was coded with `codings` in that order (as `parseContentCoding` returns them). A decoding that
 * exceeds `bytesMax` stops with `content_too_large`. Empty content stays empty. Short content is decoded at once,
 * longer on the thread pool, where `bytesMax` is held in the memory budget until the size is known.
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
    coding.pooled(bytes, zlibOptions(coding, bytesMax), (error, result) => {
      const decoded = error === null ? accept(result, bytes.length) : refuse(error);
      memory?.giveBack(decoded.ok ? bytesMax - decoded.bytes.length : bytesMax);
      resolve(decoded);
    });
  });
}

function undoInline(bytes: Uint8Array, coding: Coding, bytesMax: number): Decoded {
  try {
    return accept(coding.inline(bytes, zlibOptions(coding, bytesMax)), bytes.length);
  } catch (error) {
    return refuse(error);
  }
}

function zlibOptions(coding: Coding, bytesMax: number): Options {
  const chunkSize = Math.max(1024, Math.min(decodedChunkBytes, bytesMax));
  const options = { info: true, maxOutputLength: Math.max(1, bytesMax), chunkSize };
  return coding.params === undefined ? options : { ...options, params: coding.params };
}

/** Refuses octets after the end of the stream, which Node's engines ignore. */
function accept(result: unknown, bytesLength: number): Decoded {
  const { buffer, engine } = result as Informed;
  if (engine.bytesWritten !== bytesLength) return { ok: false, code: 'content_malformed' };
  return { ok: true, bytes: buffer };
}

function refuse(error: unknown): Decoded {
  const tooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
  return { ok: false, code: tooLarge ? 'content_too_large' : 'content_malformed' };
}

/** The message as a handler gets it (config/handler.ts). The body is read only as far as the handler asks. */
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import { type ReceivedMessage, UnprocessableMessage } from '../../../config/handler.ts';
import type { RunMessage } from './protocol.ts';

/** Of a body whose content coding is taken off. */
const decodedBytesMax = 256 * 1024 * 1024;

type Decode = (bytes: Uint8Array, options: { readonly maxOutputLength: number }) => Uint8Array;

const codings: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  ['deflate', inflateSync],
  ['br', brotliDecompressSync],
  ['zstd', zstdDecompressSync],
  ['identity', (bytes) => bytes],
]);

export function receivedMessage(message: RunMessage['message'], signal: () => AbortSignal): ReceivedMessage {
  const { contentEncoding, body: base64, ...told } = message;
  const body = new Uint8Array(Buffer.from(base64, 'base64'));
  let known: string | undefined;
  const text = (): string => {
    known ??= decodeText(withoutCodings(body, contentEncoding));
    return known;
  };
  return {
    ...told,
    body,
    text,
    json: () => parse(text()),
    form: () => new URLSearchParams(text()),
    get signal() {
      return signal();
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new UnprocessableMessage('the body is not JSON');
  }
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UnprocessableMessage('the body is not UTF-8');
  }
}

/** Codings stand in the order in which they were applied (RFC 9110 §8.4). */
function withoutCodings(body: Uint8Array, contentEncoding: string | null): Uint8Array {
  if (contentEncoding === null || contentEncoding.trim() === '') return body;
  let bytes = body;
  for (const coding of contentEncoding.split(',').reverse()) {
    const name = coding.trim().toLowerCase();
    const decode = codings.get(name);
    if (decode === undefined)
      throw new UnprocessableMessage('the body has a content coding that is not known here');
    try {
      bytes = decode(bytes, { maxOutputLength: decodedBytesMax });
    } catch {
      throw new UnprocessableMessage(`the body is not sound ${name}, or far too large without it`);
    }
  }
  return bytes;
}

/** The message as a handler receives it (config/handler.ts). Its text is decoded only when the handler reads it. */
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import { type ReceivedMessage, UnprocessableMessage } from '../../config/handler.ts';
import type { GivenMessage } from './task.ts';

/** Of a decoded body. */
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

export function receivedMessage(message: GivenMessage): ReceivedMessage {
  const { contentEncoding, body: base64, ...shown } = message;
  const body = new Uint8Array(Buffer.from(base64, 'base64'));
  let known: string | undefined;
  const text = (): string => {
    known ??= decodeText(withoutCodings(body, contentEncoding));
    return known;
  };
  return {
    ...shown,
    body,
    text,
    json: () => parse(text()),
    form: () => new URLSearchParams(text()),
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

/** Content codings are listed in the order in which they were applied (RFC 9110 §8.4). */
function withoutCodings(body: Uint8Array, contentEncoding: string | null): Uint8Array {
  if (contentEncoding === null || contentEncoding.trim() === '') return body;
  let bytes = body;
  for (const coding of contentEncoding.split(',').reverse()) {
    const name = coding.trim().toLowerCase();
    const decode = codings.get(name);
    if (decode === undefined) throw new UnprocessableMessage('the body has an unknown content coding');
    try {
      bytes = decode(bytes, { maxOutputLength: decodedBytesMax });
    } catch {
      throw new UnprocessableMessage(`the body is not valid ${name}, or too large after decompression`);
    }
  }
  return bytes;
}

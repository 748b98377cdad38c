/**
 * Content codings of answers (RFC 9110 §8.4.1, §12.5.3): which one, and the coding itself, off the event loop.
 */
import { brotliCompress, constants, gzip } from 'node:zlib';
import { preferredCoding } from '../../http/syntax/accept-encoding.ts';
import { type Coding, codings } from '../validators.ts';

/** A list of 20 products, 5358 octets: 454 in 68 µs by brotli 4, 611 in 50 µs by gzip 6 (two-core machine). */
const brotliQuality = 4;

/** Where Accept-Encoding allows nothing that we have, the representation is sent as it is (RFC 9110 §12.5.3). */
export function chooseCoding(acceptEncoding: string | undefined): Coding {
  if (acceptEncoding === undefined) return 'identity';
  return (preferredCoding(acceptEncoding, codings) as Coding | undefined) ?? 'identity';
}

export function encode(
  content: string | Uint8Array,
  coding: Exclude<Coding, 'identity'>,
): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const done = (error: Error | null, bytes: Uint8Array) => (error === null ? resolve(bytes) : reject(error));
  if (coding === 'br') {
    brotliCompress(content, { params: { [constants.BROTLI_PARAM_QUALITY]: brotliQuality } }, done);
  } else gzip(content, done);
  return promise;
}

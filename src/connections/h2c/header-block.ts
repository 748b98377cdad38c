/**
 * The request of HTTP/1.1 as a header block of HTTP/2 (RFC 7541 §6.2.2): every field a literal with its name, without indexing and without
 * Huffman coding. The dynamic table is thereby left as the client's own encoder believes it to be, and its later blocks decode.
 *
 * Fields that speak of the connection have no place in HTTP/2 (RFC 9113 §8.2.2); `Host` has become `:authority`.
 */
import { type H2cRequest, tokensOf } from './judge-upgrade.ts';

const dropped: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
]);

export function encodeHeaderBlock(request: H2cRequest, authority: string): Uint8Array {
  const { method, target, rawFields } = request;
  const named = new Set(tokensOf(rawFields, 'connection'));
  const parts: Buffer[] = [];
  writeLiteral(parts, ':method', method);
  writeLiteral(parts, ':scheme', 'http');
  writeLiteral(parts, ':authority', authority);
  writeLiteral(parts, ':path', target);
  for (let index = 0; index + 1 < rawFields.length; index += 2) {
    const name = (rawFields[index] ?? '').toLowerCase();
    if (!dropped.has(name) && !named.has(name)) writeLiteral(parts, name, rawFields[index + 1] ?? '');
  }
  return Buffer.concat(parts);
}

function writeLiteral(parts: Buffer[], name: string, value: string): void {
  parts.push(Buffer.from([0]));
  writeString(parts, name);
  writeString(parts, value);
}

/** RFC 7541 §5.2, with H = 0. node:http gives octets as latin1. */
function writeString(parts: Buffer[], text: string): void {
  const octets = Buffer.from(text, 'latin1');
  parts.push(Buffer.from(encodeInteger(octets.length)), octets);
}

/** RFC 7541 §5.1, with a prefix of seven bits. */
function encodeInteger(value: number): readonly number[] {
  const prefixMax = 127;
  if (value < prefixMax) return [value];
  const octets = [prefixMax];
  let rest = value - prefixMax;
  while (rest >= 128) {
    octets.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  octets.push(rest);
  return octets;
}

/**
 * The beginning of an answer's content as text. What is compressed is decompressed no further than the text needs, so that ten thousand
 * to one costs as much as one to one; what cannot be decoded gives no text. RFC 9110 §8.4.
 */
import type { Transform } from 'node:stream';
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';

/** Octets of UTF-8 for one UTF-16 code unit, at most. */
const bytesPerCharacterMax = 3;

/** Codings in a row that are undone; nobody needs more than one. */
const codingsMax = 2;

/** Octets of the content that a snippet of so many characters needs. */
export function snippetBytes(characters: number): number {
  return characters * bytesPerCharacterMax;
}

/** Codings of a Content-Encoding field in the order in which they are to be undone; none for `identity`. */
export function readCodings(field: string | readonly string[] | undefined): readonly string[] {
  if (field === undefined) return [];
  const text = typeof field === 'string' ? field : field.join(',');
  return text
    .split(',')
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== '' && part !== 'identity')
    .reverse();
}

/** At most `characters` UTF-16 code units of UTF-8; octets that are none become U+FFFD, and so does NUL, which no store keeps. */
export function toSnippet(bytes: Uint8Array, characters: number): string {
  const wanted = snippetBytes(characters);
  const isWhole = bytes.length <= wanted;
  const part = isWhole ? bytes : bytes.subarray(0, wanted);
  // `stream` keeps back a character that is cut in two.
  const text = new TextDecoder().decode(part, { stream: !isWhole });
  const cut = text.length <= characters ? text : cutWell(text, characters);
  return cut.includes('\0') ? cut.replaceAll('\0', '\ufffd') : cut;
}

/** The first octets of the content with its codings undone, in bounds; empty for a coding that is not known. */
export async function decodeBeginning(
  bytes: Uint8Array,
  codings: readonly string[],
  bytesMax: number,
): Promise<Uint8Array> {
  if (codings.length > codingsMax) return new Uint8Array();
  let content = bytes;
  for (const coding of codings) {
    const decoder = decoderOf(coding, content);
    if (decoder === undefined) return new Uint8Array();
    content = await runBounded(decoder, content, bytesMax);
  }
  return content;
}

function decoderOf(coding: string, content: Uint8Array): Transform | undefined {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return ownEmitter(createGunzip(), ignoreError);
    case 'br':
      return ownEmitter(createBrotliDecompress(), ignoreError);
    case 'zstd':
      return ownEmitter(createZstdDecompress(), ignoreError);
    case 'deflate':
      // RFC 9110 §8.4.1.2: some send deflate without the zlib header, whose first octet has 8 in its low half.
      return ((content[0] ?? 0) & 0x0f) === 8
        ? ownEmitter(createInflate(), ignoreError)
        : ownEmitter(createInflateRaw(), ignoreError);
    default:
      return undefined;
  }
}

/** What came out until the bound, the end, or the first fault. */
function runBounded(decoder: Transform, bytes: Uint8Array, bytesMax: number): Promise<Uint8Array> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    const finish = (): void => {
      decoder.destroy();
      resolve(Buffer.concat(chunks).subarray(0, bytesMax));
    };
    decoder.on('data', (chunk: Uint8Array) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= bytesMax) finish();
    });
    decoder.once('end', finish);
    // Cut content ends in a fault: what was decoded before it stands.
    decoder.on('error', finish);
    decoder.end(bytes);
  });
}

/** Never the first half of a surrogate pair alone. */
function cutWell(text: string, characters: number): string {
  const last = text.charCodeAt(characters - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? characters - 1 : characters);
}

/**
 * Reads the content of an answer up to its limit, and keeps its beginning for the log: uncompressed content no further than the snippet
 * needs.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Transform } from 'node:stream';
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';

export type ContentBounds = {
  /** Limit of the content, before and after decompression. */
  readonly answerBytesMax: number;
  readonly snippetCharacters: number;
};

export class AnswerContent {
  readonly #bounds: ContentBounds;
  readonly #codings: readonly string[];
  readonly #keepBytesMax: number;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  constructor(bounds: ContentBounds, codings: readonly string[]) {
    const { answerBytesMax, snippetCharacters } = bounds;
    this.#bounds = bounds;
    this.#codings = codings;
    // The snippet may need any number of compressed octets.
    this.#keepBytesMax =
      codings.length === 0 ? Math.min(snippetBytes(snippetCharacters), answerBytesMax) : answerBytesMax;
  }

  /** Adds a chunk; false: the content exceeds its limit. */
  add(chunk: Uint8Array): boolean {
    const room = this.#keepBytesMax - this.#bytes;
    if (room > 0) this.#chunks.push(chunk.length <= room ? chunk : chunk.subarray(0, room));
    this.#bytes += chunk.length;
    return this.#bytes <= this.#bounds.answerBytesMax;
  }

  /** The text of what was kept: at once, unless it must be decompressed. */
  snippet(): string | Promise<string> {
    const { answerBytesMax, snippetCharacters } = this.#bounds;
    const [first = new Uint8Array()] = this.#chunks;
    const content = this.#chunks.length <= 1 ? first : Buffer.concat(this.#chunks);
    if (this.#codings.length === 0) return toSnippet(content, snippetCharacters);
    const bytesMax = Math.min(snippetBytes(snippetCharacters), answerBytesMax);
    return decodeBeginning(content, this.#codings, bytesMax).then((decoded) =>
      toSnippet(decoded, snippetCharacters),
    );
  }
}

/** Fields of an answer that are kept for the log of attempts; further ones are dropped. */
const answerFieldsMax = 64;

const answerFieldCharactersMax = 1024;

/** Lower-case names and values, one entry for each line of a repeated field. */
export function keepFields(fields: IncomingHttpHeaders): readonly (readonly [string, string])[] {
  const kept: (readonly [string, string])[] = [];
  for (const name in fields) {
    if (!Object.hasOwn(fields, name)) continue;
    const value = fields[name];
    if (value === undefined) continue;
    for (const line of typeof value === 'string' ? [value] : value) {
      if (kept.length === answerFieldsMax) return kept;
      kept.push([
        name,
        line.length <= answerFieldCharactersMax ? line : line.slice(0, answerFieldCharactersMax),
      ]);
    }
  }
  return kept;
}

/** Approximate octets of the section; for HTTP/2, of its decompressed text. */
export function sizeOf(fields: IncomingHttpHeaders): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(fields)) {
    for (const line of typeof value === 'string' ? [value] : (value ?? []))
      bytes += name.length + line.length + 4;
  }
  return bytes;
}

/** Octets of UTF-8 for one UTF-16 code unit, at most. */
const bytesPerCharacterMax = 3;

/** Codings in a row that are decoded; in practice there is one. */
const codingsMax = 2;

/**
 * Octets that a snippet of this many characters needs. Compressed content is decoded no further (RFC 9110 §8.4), so that a ratio of ten
 * thousand to one costs as much as one to one; undecodable content gives no text.
 */
function snippetBytes(characters: number): number {
  return characters * bytesPerCharacterMax;
}

/** Codings of a Content-Encoding field in the order of decoding; none for `identity`. */
export function readCodings(field: string | readonly string[] | undefined): readonly string[] {
  if (field === undefined) return [];
  const text = typeof field === 'string' ? field : field.join(',');
  return text
    .split(',')
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== '' && part !== 'identity')
    .reverse();
}

/** At most `characters` UTF-16 code units of UTF-8; invalid octets become U+FFFD, and so does NUL, which the stores cannot hold. */
export function toSnippet(bytes: Uint8Array, characters: number): string {
  if (bytes.length === 0) return '';
  const wanted = snippetBytes(characters);
  const isWhole = bytes.length <= wanted;
  const part = isWhole ? bytes : bytes.subarray(0, wanted);
  // `stream` keeps back a character that is cut in two.
  const text = new TextDecoder().decode(part, { stream: !isWhole });
  const cut = text.length <= characters ? text : truncate(text, characters);
  return cut.includes('\0') ? cut.replaceAll('\0', '\ufffd') : cut;
}

/** The first octets of the decoded content, within limits; empty for an unknown coding. */
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

/** The output up to the limit, the end, or the first error. */
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
    // Truncated content ends in an error: what was decoded before is valid.
    decoder.on('error', finish);
    decoder.end(bytes);
  });
}

/** Cuts the text, but not within a surrogate pair. */
function truncate(text: string, characters: number): string {
  const last = text.charCodeAt(characters - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? characters - 1 : characters);
}

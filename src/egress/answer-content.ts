/**
 * The content of an answer as far as it is read: its beginning for the log, and the count of its octets, so that reading ends at the bound.
 * Holds no more than the bound, and where the content is not compressed no more than the snippet needs.
 */
import { decodeBeginning, snippetBytes, toSnippet } from './answer-snippet.ts';

export type ContentBounds = {
  /** Octets that are read, and what compressed content may come to. */
  readonly answerBytesMax: number;
  readonly snippetCharacters: number;
};

export class AnswerContent {
  readonly #bounds: ContentBounds;
  readonly #codings: readonly string[];
  readonly #keepBytesMax: number;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  /** `codings`: as `readCodings` gives them. */
  constructor(bounds: ContentBounds, codings: readonly string[]) {
    const { answerBytesMax, snippetCharacters } = bounds;
    this.#bounds = bounds;
    this.#codings = codings;
    // Compressed octets say nothing of how many of them the snippet needs.
    this.#keepBytesMax =
      codings.length === 0 ? Math.min(snippetBytes(snippetCharacters), answerBytesMax) : answerBytesMax;
  }

  /** Takes what came; false: that was more than is read. */
  add(chunk: Uint8Array): boolean {
    const room = this.#keepBytesMax - this.#bytes;
    if (room > 0) this.#chunks.push(chunk.length <= room ? chunk : chunk.subarray(0, room));
    this.#bytes += chunk.length;
    return this.#bytes <= this.#bounds.answerBytesMax;
  }

  /** The text of what was kept: at once, unless it has to be decompressed. */
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

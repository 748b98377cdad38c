/**
 * The text that an index of words is built from (`search` of a collection). It is stored with its document, and holds single words between
 * spaces: a store splits it at spaces only.
 *
 * `#mark word word =stem =stem == word word =stem =stem `: the mark names the declaration that the text was made by, so that texts of an
 * earlier one are found and made again; with a language, the stems of a field follow its words, each behind `=`. `==` ends the first of
 * several fields, and `=` stands between other texts. No phrase crosses either.
 */
import { type SearchLanguage, stemOf, type Word, wordsOf } from './words.ts';

/** What to search and how. Plain data, because it is passed to threads. */
export type SearchIndex = {
  readonly fields: readonly string[];
  readonly language: SearchLanguage | undefined;
  /** The beginning of every text, with the space that ends it. */
  readonly mark: string;
};

/** Changes when equal texts give other words, so that all are made again. */
const version = 2;

export function createSearchIndex(
  fields: readonly string[],
  language: SearchLanguage | undefined,
): SearchIndex {
  return { fields, language, mark: `#${digest(JSON.stringify([version, fields, language]))} ` };
}

/** Characters of one document that are searched. */
const charactersMax = 1_048_576;
/** Octets of words of one document; PostgreSQL indexes at most 1 MiB, stems included. */
export const indexedOctetsMax = 393_216;
/** Words within which phrases are found; after them each new word is kept once. */
export const phraseWordsMax = 16_000;

/** A word that ends the first of several fields. */
export const headEnd = '==';

/** The stored text of a document. 20 µs for 100 words, without a language. */
export function indexedText(
  { fields, language, mark }: SearchIndex,
  resource: Readonly<Record<string, unknown>>,
): string {
  const taking: Taking = {
    words: [],
    stems: [],
    language,
    seen: new Map(),
    taken: 0,
    octets: 0,
    characters: 0,
  };
  const { words, stems } = taking;
  for (const [at, name] of fields.entries()) {
    const value = resource[name];
    for (const text of Array.isArray(value) ? value : [value]) {
      if (typeof text === 'string') takeWords(text, taking);
    }
    for (const stem of stems) words.push(stem);
    stems.length = 0;
    if (at === 0 && fields.length > 1) words.push(headEnd);
  }
  return `${mark}${words.map((word) => `${word} `).join('')}`;
}

type Taking = {
  /** The words of all fields so far, with what is between them. */
  readonly words: string[];
  /** The stems of the field that is read. */
  readonly stems: string[];
  readonly language: SearchLanguage | undefined;
  /** The stem of each word so far; empty without a language. */
  readonly seen: Map<string, string>;
  /** Words, without stems and what stands between fields. */
  taken: number;
  octets: number;
  characters: number;
};

function takeWords(text: string, taking: Taking): void {
  const { words } = taking;
  const left = charactersMax - taking.characters;
  taking.characters += text.length;
  if (left <= 0) return;
  if (words.length > 0 && words.at(-1) !== headEnd) words.push('=');
  for (const word of wordsOf(text.slice(0, left))) {
    if (taking.octets >= indexedOctetsMax) return;
    takeWord(word, taking);
  }
}

function takeWord(word: Word, taking: Taking): void {
  const { words, stems, language, seen } = taking;
  const { plain } = word;
  let stem = seen.get(plain);
  const isNew = stem === undefined;
  const isFar = taking.taken >= phraseWordsMax;
  if (isFar && !isNew) return;
  stem ??= language === undefined ? '' : stemOf(language, word);
  if (isNew) seen.set(plain, stem);
  if (isFar) words.push('=');
  words.push(plain);
  taking.taken += 1;
  taking.octets += plain.length * 3;
  if (language !== undefined) stems.push(`=${stem}`);
}

/** Two FNV-1a hashes of 32 bits: equal for declarations that differ once in 2^64. */
function digest(text: string): string {
  return [0x811c9dc5, 0x01000193].map((seed) => fnv(text, seed).toString(36).padStart(7, '0')).join('');
}

function fnv(text: string, seed: number): number {
  let hash = seed;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}

// Parses `q` for an index of words: `word`, `pre*` and `"exact words"`, all of which must occur. There is no other syntax and no
// malformed text: every other character separates words, and an unclosed quotation ends with the text. A store gets words only, never
// this text. A term is a substring of the stored text (search-index.ts), which ends with a space unless it is a prefix.

/** A quotation, or what stands between white space and quotation marks. */
const pieces = /"([^"]*)(?:"|$)|[^\s"]+/gu;

type ParsedSearch = {
  /** Distinct; at most one more than `termsMax`. */
  readonly terms: readonly string[];
  /** A word or phrase that is too long, at which parsing stopped. */
  readonly tooLong?: string;
};

/** Stops at the first term beyond a limit, however long the text. */
export function parseSearch(
  index: SearchIndex,
  text: string,
  { termsMax, termCharactersMax }: { readonly termsMax: number; readonly termCharactersMax: number },
): ParsedSearch {
  const terms = new Set<string>();
  for (const [piece, quoted] of text.matchAll(pieces)) {
    if (piece.length > termCharactersMax) return { terms: [...terms], tooLong: piece };
    const words = [...wordsOf(quoted ?? piece)];
    const term = termOf(index, words, quoted === undefined ? piece : undefined);
    if (term !== undefined) terms.add(term);
    if (terms.size > termsMax) break;
  }
  return { terms: [...terms] };
}

/** Words that nothing separates but a hyphen or an apostrophe are a phrase, like quoted ones. */
function termOf(
  { language }: SearchIndex,
  words: readonly Word[],
  bare: string | undefined,
): string | undefined {
  const [only] = words;
  if (only === undefined) return undefined;
  const text = ` ${words.map(({ plain }) => plain).join(' ')}`;
  if (bare?.endsWith('*') === true) return text;
  if (bare === undefined || words.length > 1 || language === undefined) return `${text} `;
  return ` =${stemOf(language, only)} `;
}

/** The words of a term, and whether the last is a prefix, for the syntax of a store. */
export function wordsOfTerm(term: string): { readonly words: readonly string[]; readonly isPrefix: boolean } {
  return { words: term.trim().split(' '), isPrefix: !term.endsWith(' ') };
}

// The rank of a found document: how much of it is about the terms of `q`. It is computed from the document and the terms alone. Measures
// that weigh a word by how many documents have it (bm25) would change with every write, so that no cursor could hold, and would tell a
// caller about documents that the caller may not read. Both stores compute this one, in whole numbers, and so order alike. Each term adds
// `head` if it occurs in the first field, and up to `most` for its number of occurrences `n`, fewer the longer the text is: `most * n /
// (n + 0.3 + 0.9 * octets / 1000)`, which is the part of bm25 for one document, with k1 = 1.2, b = 0.75 and texts of 1,000 octets on
// average.

export const rankWeights = { head: 1500, most: 2200 } as const;

/** Characters of the stored text within which occurrences are counted, and occurrences that count. */
export const rankedCharactersMax = 16_384;
export const occurrencesMax = 100;

/**
 * Found documents that are ranked for one page, those stored last: 18 ms for one term and texts of 700 octets on SQLite (two-core machine). More
 * are not listed in an order by rank.
 */
export const rankedMax = 4096;

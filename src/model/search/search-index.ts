/**
 * The text that an index of words is built from (`search` of a collection). It is stored with its document, and holds single words between
 * spaces: a store splits it at spaces only.
 *
 * `#mark word word =stem =stem == word word =stem =stem `: the mark names the declaration that the text was made by, so that texts of an
 * earlier one are found and made again; with a language, the stems of a field follow its words, each behind `=`. `==` ends the first of
 * several fields (rank.ts), and `=` stands between other texts. No phrase crosses either.
 */
import { type SearchLanguage, stemOf } from './stems.ts';
import { type Word, wordsOf } from './words.ts';

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

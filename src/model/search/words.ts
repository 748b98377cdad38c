/**
 * The words of a text as search compares them: in lower case, in compatibility form and without accents. Both stores get words from here,
 * and neither splits text itself, so they find the same documents.
 *
 * A word is a run of letters, digits and marks. A character of a script that writes no spaces (Chinese, Japanese, Thai and others) is a
 * word of its own, and so is an emoji: a run of them in a query is then a phrase, which finds the run anywhere.
 */

/** Characters of a word that count; a longer word is found by these. An index of PostgreSQL takes words up to 2,046 octets. */
export const wordCharactersMax = 64;

export type Word = {
  /** Without accents. */
  readonly plain: string;
  /** With accents, from which stems are made. */
  readonly written: string;
};

const unspaced =
  '\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}\\p{sc=Tibetan}';

/** A character of an unspaced script with its marks, an emoji, or a run of other letters, digits and marks. */
const words = new RegExp(
  `[${unspaced}]\\p{M}*|\\p{Extended_Pictographic}|(?:(?![${unspaced}])[\\p{L}\\p{N}\\p{M}])+`,
  'gu',
);

const accents = /[\u0300-\u036f]+/g;
const ascii = /^[\0-\x7f]*$/;

/** Reads the words one by one, so that the reader may stop at a bound. */
export function* wordsOf(text: string): Generator<Word> {
  const folded = ascii.test(text) ? text.toLowerCase() : text.normalize('NFKC').toLowerCase();
  for (const [word] of folded.matchAll(words)) {
    const written = cut(word);
    const plain = ascii.test(written) ? written : plainOf(written);
    // Accents without a letter leave nothing.
    if (plain !== '') yield { written, plain };
  }
}

/** Final sigma is the same letter as sigma, and which one a text has depends on what follows. */
function plainOf(word: string): string {
  return cut(word.normalize('NFD').replace(accents, '').normalize('NFC').replaceAll('ς', 'σ'));
}

/** Cuts no pair of surrogates in two. */
function cut(word: string): string {
  if (word.length <= wordCharactersMax) return word;
  const last = word.charCodeAt(wordCharactersMax - 1);
  return word.slice(0, last >= 0xd800 && last <= 0xdbff ? wordCharactersMax - 1 : wordCharactersMax);
}

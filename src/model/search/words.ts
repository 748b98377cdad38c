/**
 * The words of a text as search compares them: in lower case, in compatibility form and without accents. Both stores get words from here,
 * and neither splits text itself, so they find the same documents.
 *
 * A word is a run of letters, digits and marks. A character of a script that writes no spaces (Chinese, Japanese, Thai and others) is a
 * word of its own, and so is an emoji: a run of them in a query is then a phrase, which finds the run anywhere.
 */
import { stemmer as danish } from '@orama/stemmers/danish';
import { stemmer as dutch } from '@orama/stemmers/dutch';
import { stemmer as english } from '@orama/stemmers/english';
import { stemmer as finnish } from '@orama/stemmers/finnish';
import { stemmer as french } from '@orama/stemmers/french';
import { stemmer as german } from '@orama/stemmers/german';
import { stemmer as hungarian } from '@orama/stemmers/hungarian';
import { stemmer as italian } from '@orama/stemmers/italian';
import { stemmer as norwegian } from '@orama/stemmers/norwegian';
import { stemmer as portuguese } from '@orama/stemmers/portuguese';
import { stemmer as romanian } from '@orama/stemmers/romanian';
import { stemmer as russian } from '@orama/stemmers/russian';
import { stemmer as spanish } from '@orama/stemmers/spanish';
import { stemmer as swedish } from '@orama/stemmers/swedish';
import { stemmer as turkish } from '@orama/stemmers/turkish';

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

// Stems of words by language, of the Snowball algorithms. Comity stems, and not the store, because SQLite knows English only and
// PostgreSQL's configurations may be changed by its administrator: both stores and streams then agree on every document.

export const searchLanguages = [
  'danish',
  'dutch',
  'english',
  'finnish',
  'french',
  'german',
  'hungarian',
  'italian',
  'norwegian',
  'portuguese',
  'romanian',
  'russian',
  'spanish',
  'swedish',
  'turkish',
] as const;

export type SearchLanguage = (typeof searchLanguages)[number];

const stemmers: Readonly<Record<SearchLanguage, (word: string) => string>> = {
  ...{ danish, dutch, english, finnish, french, german, hungarian, italian },
  ...{ norwegian, portuguese, romanian, russian, spanish, swedish, turkish },
};

/** Stems before accents are removed, because endings differ by them, except in English. A word that leaves no stem is its own. */
export function stemOf(language: SearchLanguage, { written, plain }: Word): string {
  const [stem] = wordsOf(stemmers[language](language === 'english' ? plain : written));
  return stem?.plain ?? plain;
}

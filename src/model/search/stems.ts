/**
 * Stems of words by language, of the Snowball algorithms. Comity stems, and not the store, because SQLite knows English only and
 * PostgreSQL's configurations may be changed by its administrator: both stores and streams then agree on every document.
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
import { type Word, wordsOf } from './words.ts';

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

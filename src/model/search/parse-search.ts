/**
 * Parses `q` for an index of words: `word`, `pre*` and `"exact words"`, all of which must occur. There is no other syntax and no malformed
 * text: every other character separates words, and an unclosed quotation ends with the text. A store gets words only, never this text.
 *
 * A term is a substring of the stored text (search-index.ts), which ends with a space unless it is a prefix.
 */
import type { SearchIndex } from './search-index.ts';
import { stemOf } from './stems.ts';
import { type Word, wordsOf } from './words.ts';

/** A quotation, or what stands between white space and quotation marks. */
const pieces = /"([^"]*)(?:"|$)|[^\s"]+/gu;

export type ParsedSearch = {
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

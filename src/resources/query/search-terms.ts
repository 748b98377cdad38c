/**
 * Compiles `q`: words, prefixes and phrases of an index, or parts of words that must all occur in the folded search text of a resource.
 */
import { foldText } from '../../model/collection.ts';
import { always, type Filter, never } from '../../model/filter.ts';
import { parseSearch } from '../../model/search/parse-search.ts';
import type { SearchIndex } from '../../model/search/search-index.ts';
import { isStorable } from './field-value.ts';
import type { QueryLimits, Target } from './list-query.ts';
import { type FaultList, type Place, quote } from './query-faults.ts';

/** The cost of a substring search is the length of the term times that of the text. */
export const searchTermCharactersMax = 200;

const whiteSpace = /\s+/u;

type Into = { readonly limits: QueryLimits; readonly faults: FaultList; readonly place: Place };

/** Folds the text before splitting it, because folding turns other white space into plain spaces. */
export function compileSearch(text: string, target: Target, into: Into): Filter {
  const { limits, faults, place } = into;
  if (!target.searched) {
    faults.unprocessable(`${target.table} has no text to search with q`, place);
    return always;
  }
  if (!isStorable(text)) {
    faults.unprocessable('q takes a string without U+0000', place);
    return always;
  }
  if (target.searchIndex !== undefined) return compileWords(text, target.searchIndex, into);
  const terms = new Set(foldText(text).split(whiteSpace));
  terms.delete('');
  if (terms.size > limits.searchTermsMax) {
    faults.unprocessable(`q takes at most ${limits.searchTermsMax} words, not ${terms.size}`, place);
    return always;
  }
  for (const term of terms) {
    if (term.length <= searchTermCharactersMax) continue;
    faults.unprocessable(
      `a word of q must have at most ${searchTermCharactersMax} characters; ${quote(term)} is longer`,
      place,
    );
    return always;
  }
  return terms.size === 0 ? always : { op: 'search', terms: [...terms] };
}

/** A text without any word finds nothing, and a blank one searches for nothing. */
function compileWords(text: string, index: SearchIndex, { limits, faults, place }: Into): Filter {
  const termsMax = limits.searchTermsMax;
  const { terms, tooLong } = parseSearch(index, text, {
    termsMax,
    termCharactersMax: searchTermCharactersMax,
  });
  if (tooLong !== undefined) {
    faults.unprocessable(
      `a word or phrase of q must have at most ${searchTermCharactersMax} characters; ${quote(tooLong)} is longer`,
      place,
    );
    return always;
  }
  if (terms.length > termsMax) {
    faults.unprocessable(`q takes at most ${termsMax} words, prefixes and phrases`, place);
    return always;
  }
  if (terms.length === 0) return text.trim() === '' ? always : never;
  return { op: 'search', terms, mark: index.mark };
}

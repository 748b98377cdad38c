/** Compiles `q`: words that must all occur in the folded search text of a resource. */
import { foldText } from '../../model/collection.ts';
import { always, type Filter } from '../../model/filter.ts';
import { isStorable } from './field-value.ts';
import type { QueryLimits, Target } from './list-query.ts';
import { type FaultList, type Place, quote } from './query-faults.ts';

/** The cost of a substring search is the length of the term times that of the text. */
export const searchTermCharactersMax = 200;

const whiteSpace = /\s+/u;

/** Folds the text before splitting it, because folding turns other white space into plain spaces. */
export function compileSearch(
  text: string,
  target: Target,
  into: { readonly limits: QueryLimits; readonly faults: FaultList; readonly place: Place },
): Filter {
  const { limits, faults, place } = into;
  if (!target.searched) {
    faults.unprocessable(`${target.table} has no text to search with q`, place);
    return always;
  }
  if (!isStorable(text)) {
    faults.unprocessable('q takes a string without U+0000', place);
    return always;
  }
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

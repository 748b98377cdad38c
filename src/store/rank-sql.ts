/**
 * The rank of a found row (src/model/search/search-index.ts) in SQL, in whole numbers, so that both engines compute the same. `search` is the text
 * of the row.
 */
import { headEnd, occurrencesMax, rankedCharactersMax, rankWeights } from '../model/search/search-index.ts';

type RankDialect = {
  /** The place of a text in another, from 1; 0 if it does not occur. */
  readonly place: string;
  readonly least: string;
  readonly greatest: string;
  /** Adds the term as a parameter. @returns its mark */
  readonly term: (at: number) => string;
};

/** @param terms where the values of the terms are */
export function rankSql(terms: readonly number[], dialect: RankDialect): string {
  return `(${terms.map((at) => termSql(() => dialect.term(at), dialect)).join(' + ')})`;
}

/** `term` is called once for each mark, in the order of the text. */
function termSql(term: () => string, { place, least, greatest }: RankDialect): string {
  const text = `substr(search, 1, ${rankedCharactersMax})`;
  const { head, most } = rankWeights;
  const inHead = `CASE WHEN ${place}(${text}, ${term()}) BETWEEN 1 AND ${place}(${text}, ' ${headEnd} ') THEN ${head} ELSE 0 END`;
  const removed = `octet_length(${text}) - octet_length(replace(${text}, ${term()}, ''))`;
  // Stems may follow behind the counted characters.
  const occurrences = `${least}(${greatest}((${removed}) / octet_length(${term()}), 1), ${occurrencesMax})`;
  return `${inHead} + ${most * 1000} / (1000 + (300 + octet_length(search) * 9 / 10) / ${occurrences})`;
}

/**
 * The rank of a found document: how much of it is about the terms of `q`. It is computed from the document and the terms alone. Measures
 * that weigh a word by how many documents have it (bm25) would change with every write, so that no cursor could hold, and would tell a
 * caller about documents that the caller may not read. Both stores compute this one, in whole numbers, and so order alike.
 *
 * Each term adds `head` if it occurs in the first field, and up to `most` for its number of occurrences `n`, fewer the longer the text is:
 * `most * n / (n + 0.3 + 0.9 * octets / 1000)`, which is the part of bm25 for one document, with k1 = 1.2, b = 0.75 and texts of 1,000
 * octets on average.
 */
export const rankWeights = { head: 1500, most: 2200 } as const;

/** Characters of the stored text within which occurrences are counted, and occurrences that count. */
export const rankedCharactersMax = 16_384;
export const occurrencesMax = 100;

/**
 * Found documents that are ranked for one page, those stored last: 18 ms for one term and texts of 700 octets on SQLite (two-core machine). More
 * are not listed in an order by rank.
 */
export const rankedMax = 4096;

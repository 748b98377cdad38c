/**
 * Quoting of texts that stand in SQL text because SQLite takes no parameter there: the JSON paths of expression indexes,
 * which must be literals to match a query.
 * Everything a client sends travels as a bound parameter and never passes through here.
 */

/** A text literal in single quotes. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/**
 * Texts that stand in SQL because PostgreSQL takes no parameter there: JSON paths of expression indexes, which must be literals to
 * match a query. Everything a client sends travels as a bound parameter and never passes through here.
 */

/** A text literal in single quotes; one with a backslash is written so that no setting of the server can change its meaning. */
export function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted;
}

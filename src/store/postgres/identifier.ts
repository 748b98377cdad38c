/**
 * Quoting of names and texts that stand in SQL text because PostgreSQL takes no parameter there: schemas, tables and
 * indexes, and the JSON paths of expression indexes, which must be literals to match a query.
 * Everything a client sends travels as a bound parameter and never passes through here.
 */

/** An identifier in double quotes. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A text literal in single quotes; one with a backslash is written so that no setting of the server can change its meaning. */
export function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted;
}

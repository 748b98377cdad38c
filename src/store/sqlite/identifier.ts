/**
 * Quoting of names and texts that stand in SQL text because SQLite takes no parameter there: table and
 * index names, and the JSON paths of expression indexes, which must be literals to match a query.
 * Everything a client sends travels as a bound parameter and never passes through here.
 */

/** An identifier in double quotes. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A text literal in single quotes. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Quotes JSON paths of expression indexes, which must be literals to match a query. Values from clients are always bound as parameters. */

/** A literal in single quotes; one with a backslash does not depend on the server's settings. */
export function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted;
}

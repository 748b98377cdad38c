/** Quotes an identifier for SQL text, where neither engine takes a parameter. */

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

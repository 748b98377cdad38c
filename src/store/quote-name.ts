/** How both engines quote the names of tables and indexes, which stand in SQL text because neither takes a parameter there. */

/** An identifier in double quotes. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

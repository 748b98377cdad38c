/** Quotes an identifier, where neither engine takes a parameter. The writer's thread imports it, and must not load the stemmers, which the rank needs. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

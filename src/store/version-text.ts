/** Spells a table's version, the last revision that touched it, so that clients do not compute with it. Used by both engines. */
export function versionText(rev: number): string {
  return rev.toString(36);
}

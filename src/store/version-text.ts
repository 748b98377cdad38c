/** How a table's version is written, the same by every engine. */

/** A table's version is the last revision that touched it, spelled so that nobody counts with it. */
export function versionText(rev: number): string {
  return rev.toString(36);
}

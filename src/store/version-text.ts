/** Spells a table's version, the last revision that touched it, so that clients do not compute with it. Used by both engines. */
export function versionText(rev: number): string {
  return rev.toString(36);
}

/**
 * The later of two versions. Every unit has a greater revision than all before it, so the latest version of several tables changes with each
 * unit that changes one of them, and only then.
 */
export function laterVersion(one: string, other: string): string {
  if (one.length !== other.length) return one.length > other.length ? one : other;
  return one > other ? one : other;
}

/**
 * The row of `comity_counters` with the greatest revision of the events that were purged, and its name, which no table has. It exists from
 * the first purge on.
 */
export const purgedCounter = -2;
export const purgedCounterName = ' purged';

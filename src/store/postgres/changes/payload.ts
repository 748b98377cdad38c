/**
 * What a committer tells the other processes with NOTIFY: `<rev>:<n>,<n>,...`, the numbers of the tables that its units touched up to
 * that revision. Any role of the database may send on the channel, so everything that is not of this form is passed over.
 */

export type Touched = { readonly rev: number; readonly tables: readonly number[] };

/** Undefined for a text that no committer wrote. */
export function parseTouched(payload: string): Touched | undefined {
  const colon = payload.indexOf(':');
  if (colon < 0) return undefined;
  const rev = wholeNumber(payload.slice(0, colon));
  if (rev === undefined) return undefined;
  const tables: number[] = [];
  for (const part of payload.slice(colon + 1).split(',')) {
    const table = wholeNumber(part);
    if (table === undefined) return undefined;
    tables.push(table);
  }
  return { rev, tables };
}

/** A positive number in decimal digits as JavaScript writes one, exact as a double. */
function wholeNumber(text: string): number | undefined {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 && String(value) === text ? value : undefined;
}

/**
 * Rows that the declaration of their table refuses. For a field that became unique these are the rows with equal values: both engines find
 * them with one statement around their own expression of the value, when an index cannot be made and beforehand (`duplicatesSentence`).
 */
import type { Field } from '../model/field.ts';
import { memberAt } from '../model/matches.ts';

/** Thrown if stored rows violate the declaration, such as a field that became unique. The message names rows. */
export class UnfitRows extends Error {
  override readonly name = 'UnfitRows';
  readonly code = 'store_unfit_rows';
  /** Label of the index that they violate. */
  readonly index: string | undefined;

  constructor(
    message: string,
    { index, cause }: { readonly index: string | undefined; readonly cause: unknown },
  ) {
    super(message, { cause });
    this.index = index;
  }
}

/** Values that a sentence shows, most frequent first. */
const valuesShownMax = 5;
const valueCharactersMax = 64;

/**
 * Reads the table once, as building the index does.
 * @param name of the table, quoted
 * @param value expression of the field
 */
export function duplicatesSql(name: string, value: string): string {
  return `WITH shared AS (
    SELECT count(*) AS held, min(id) AS first, max(id) AS last
    FROM (SELECT ${value} AS value, id FROM ${name} WHERE deleted_at IS NULL) AS rows_of_table
    WHERE value IS NOT NULL GROUP BY value HAVING count(*) > 1)
    SELECT held, first, last, (SELECT doc FROM ${name} WHERE id = first), count(*) OVER (), sum(held) OVER ()
    FROM shared ORDER BY held DESC, first LIMIT ${valuesShownMax}`;
}

/** @param rows of the statement @returns undefined if no two rows have the same value */
export function duplicatesSentence(
  table: string,
  field: Field,
  rows: readonly (readonly unknown[])[],
): string | undefined {
  const [first] = rows;
  if (first === undefined) return undefined;
  const [values, documents] = [Number(first[4]), Number(first[5])];
  const shown = rows.map(([held, one, other, doc]) => {
    const value = JSON.stringify(memberAt(JSON.parse(String(doc)), field.path)) ?? '';
    return `${Number(held).toLocaleString('en')} have ${value.slice(0, valueCharactersMax)}, such as ${one} and ${other}`;
  });
  const more = values > rows.length ? `; and ${(values - rows.length).toLocaleString('en')} more values` : '';
  return `${table}: ${field.name} must be unique, and ${documents.toLocaleString('en')} documents have a value that another has: ${shown.join('; ')}${more}; give each a value of its own, with a server of the earlier declaration or by a migration`;
}

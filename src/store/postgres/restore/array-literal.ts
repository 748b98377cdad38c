/**
 * A list of values as one parameter: PostgreSQL's array literal (manual, 8.15.2), to be cast to what it is an array of, as in
 * `$1::text[]`. For sessions, which take single values.
 */

export function arrayLiteral(values: readonly (string | number | null)[]): string {
  let literal = '{';
  for (const value of values) {
    if (literal.length > 1) literal += ',';
    if (value === null) literal += 'NULL';
    else if (typeof value === 'number') literal += value;
    else literal += `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
  }
  return `${literal}}`;
}

/** Rows for people, in columns as wide as they need. What a server says is printed without control characters. */

/** @param rows the first holds the names of the columns */
export function tableText(rows: readonly (readonly string[])[]): string {
  const clean = rows.map((row) => row.map(printable));
  const widths = (clean[0] ?? []).map((_, column) =>
    Math.max(...clean.map((row) => (row[column] ?? '').length)),
  );
  const lines = clean.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  '),
  );
  return lines.map((line) => line.trimEnd()).join('\n');
}

const controls = /\p{C}/gu;

/** A name that somebody registered with must not steer the terminal of whoever lists it. */
export function printable(text: string): string {
  return text.replace(controls, '\u{FFFD}');
}

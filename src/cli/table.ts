/** Rows for people, in columns as wide as they need. What a server says is printed without control characters. */
import type { Listed } from './server-client.ts';
import type { Terminal } from './terminal.ts';

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

type LabelledLine = readonly [label: string, value: string | number | null | undefined];

/** One thing for people: a line for each of its members that has a value, the labels in a column. */
export function labelledLines(lines: readonly LabelledLine[]): string {
  const told = lines.filter(([, value]) => value !== undefined && value !== null);
  const width = Math.max(...told.map(([label]) => label.length));
  return told.map(([label, value]) => `${label.padEnd(width)}  ${printable(String(value))}`).join('\n');
}

/** A list on stdout: a table for people, one JSON array for programs. That there is more is told on stderr. */
export function tellList<T>(
  terminal: Terminal,
  { items, more }: Listed<T>,
  json: boolean,
  forPeople: { readonly text: (items: readonly T[]) => string; readonly none: string },
): void {
  if (json) terminal.out(JSON.stringify(items, undefined, 2));
  else terminal.out(items.length === 0 ? forPeople.none : forPeople.text(items));
  if (more) terminal.err(`comity: there are more than these ${items.length}; --limit shows more of them`);
}

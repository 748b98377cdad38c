/** Tables and lists for people. Text from a server is printed without control characters. */
import type { Listed } from './server-client.ts';
import type { Terminal } from './terminal.ts';

/** @param rows the first contains the names of the columns */
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

/** Replaces control characters: the name of an account must not control the terminal that lists it. */
export function printable(text: string): string {
  return text.replace(controls, '\u{FFFD}');
}

type LabelledLine = readonly [label: string, value: string | number | null | undefined];

/** One line for each member that has a value, with the labels in a column. */
export function labelledLines(lines: readonly LabelledLine[]): string {
  const present = lines.filter(([, value]) => value !== undefined && value !== null);
  const width = Math.max(...present.map(([label]) => label.length));
  return present.map(([label, value]) => `${label.padEnd(width)}  ${printable(String(value))}`).join('\n');
}

/** Prints a list on stdout, as a table or a JSON array, and a note on stderr if there are more items. */
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

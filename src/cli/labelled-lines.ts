/** One thing for people: a line for each of its members that has a value, the labels in a column. */
import { printable } from './table.ts';

export type LabelledLine = readonly [label: string, value: string | number | null | undefined];

export function labelledLines(lines: readonly LabelledLine[]): string {
  const told = lines.filter(([, value]) => value !== undefined && value !== null);
  const width = Math.max(...told.map(([label]) => label.length));
  return told.map(([label, value]) => `${label.padEnd(width)}  ${printable(String(value))}`).join('\n');
}

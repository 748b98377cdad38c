/** Tables of a page with a row for each program, of which a run may replace some. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type Table = {
  readonly head: readonly string[];
  /** The first cell begins with the name of the program. */
  readonly rows: readonly (readonly string[])[];
};

/** Programs by name, in the order of their rows. */
type Order = readonly { readonly name: string }[];

/** A table by the name in its marks, and its page from the root of the repository. */
type Place = { readonly page: string; readonly name: string };

const root = join(import.meta.dirname, '../..');

export function tableOf({ head, rows }: Table): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(3, ...all.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

/**
 * Replaces the rows of these programs in the table between the marks of the name, adds those that it lacks, and removes those of no program.
 * @throws where the page has no such marks
 */
export function putRows({ page, name }: Place, { head, rows }: Table, order: Order): void {
  const path = join(root, page);
  const text = readFileSync(path, 'utf8');
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from === -1 || to === -1) throw new Error(`${page} lacks ${begin} and ${end}`);
  const standing = text
    .slice(from + begin.length, to)
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
  // A merge of two branches may have left a program two rows: the newest of this run, or else the last, is kept.
  const byName = new Map([...standing, ...rows].map((row) => [programOf(row), row]));
  const sorted = order.map((each) => byName.get(each.name.toLowerCase())).filter((row) => row !== undefined);
  const table = tableOf({ head, rows: sorted });
  writeFileSync(path, `${text.slice(0, from + begin.length)}\n\n${table}\n\n${text.slice(to)}`);
}

/** The name of a program, from a cell with its version. */
function programOf([cell = '']: readonly string[]): string {
  return cell.replace(/ \d.*$/, '').toLowerCase();
}

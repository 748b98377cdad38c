/** Tables and lists for people. Text from a server is printed without control characters. */

type Shown = string | number | null | undefined;

/** A member of the item, or a value made of it. */
type Cell<T> = (keyof T & string) | ((item: T) => Shown | readonly string[]);

type Cells<T> = Readonly<Record<string, Cell<T>>>;

/** Renders a line for each item, below the names of the columns. */
export function columns<T>(cells: Cells<T>): (items: readonly T[]) => string {
  const row = (item: T): readonly string[] =>
    Object.values<Cell<T>>(cells).map((cell) => {
      const value = cellOf(item, cell);
      return Array.isArray(value) ? value.join(', ') : String(value ?? '');
    });
  return (items) => tableText([Object.keys(cells), ...items.map(row)]);
}

/** Renders a line for each member that has a value, with the labels in a column; an array made by a function is several lines. */
export function lines<T>(cells: Cells<T>): (item: T) => string {
  return (item) => {
    const rows = Object.entries<Cell<T>>(cells).flatMap(([label, cell]) => {
      const value = cellOf(item, cell);
      const values = Array.isArray(value) ? (typeof cell === 'string' ? [value.join(', ')] : value) : [value];
      return values.flatMap((each) => (each === undefined || each === null ? [] : [[label, String(each)]]));
    });
    const width = Math.max(...rows.map(([label = '']) => label.length));
    return rows.map(([label = '', text = '']) => `${label.padEnd(width)}  ${printable(text)}`).join('\n');
  };
}

function cellOf<T>(item: T, cell: Cell<T>): unknown {
  return typeof cell === 'function' ? cell(item) : item[cell];
}

function tableText(rows: readonly (readonly string[])[]): string {
  const clean = rows.map((row) => row.map(printable));
  const widths = (clean[0] ?? []).map((_, column) =>
    Math.max(...clean.map((row) => (row[column] ?? '').length)),
  );
  const padded = clean.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  '),
  );
  return padded.map((line) => line.trimEnd()).join('\n');
}

const controls = /\p{C}/gu;

/** Replaces control characters: the name of an account must not control the terminal that lists it. */
export function printable(text: string): string {
  return text.replace(controls, '\u{FFFD}');
}

const whiteSpace = /\s+/g;
/** Keeps a row of a table on its line of the terminal; `--json` shows all. */
const lineCharactersMax = 60;

/** The beginning of a text of several lines. */
export function onOneLine(text: string): string {
  return text.replace(whiteSpace, ' ').trim().slice(0, lineCharactersMax);
}

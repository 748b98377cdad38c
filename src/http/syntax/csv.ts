/**
 * One record of CSV (RFC 4180), with commas between cells: read into cells, and written from values. A cell says whether it was quoted,
 * because an empty cell is null and `""` is an empty text. The records of a text are cut apart in resources/document/record-cutter.ts.
 */

export type CsvCell = { readonly text: string; readonly isQuoted: boolean };

export type CsvRecord =
  | { readonly ok: true; readonly cells: readonly CsvCell[] }
  /** `column`: the cell at fault, from 1. */
  | { readonly ok: false; readonly column: number; readonly message: string };

/** @param text without the line break at its end */
export function parseCsvRecord(text: string, cellsMax: number): CsvRecord {
  const cells: CsvCell[] = [];
  for (let at = 0; ; ) {
    const column = cells.length + 1;
    const fail = (message: string): CsvRecord => ({ ok: false, column, message });
    if (column > cellsMax) return fail(`has more than ${cellsMax} cells`);
    const isQuoted = text[at] === '"';
    const end = isQuoted ? endOfQuoted(text, at + 1) : endOfPlain(text, at);
    if (end === -1) return fail('begins with a quote that is not closed');
    const inner = isQuoted ? text.slice(at + 1, end - 1).replaceAll('""', '"') : text.slice(at, end);
    if (!isQuoted && inner.includes('"'))
      return fail('has a quote within it: a cell with quotes is quoted, and they are doubled');
    if (end < text.length && text[end] !== ',') return fail('has text after the quote that closes it');
    cells.push({ text: inner, isQuoted });
    if (end === text.length) return { ok: true, cells };
    at = end + 1;
  }
}

function endOfPlain(text: string, from: number): number {
  const comma = text.indexOf(',', from);
  return comma === -1 ? text.length : comma;
}

/** @returns the index after the closing quote; -1: there is none */
function endOfQuoted(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at !== -1; at = text.indexOf('"', at + 2))
    if (text[at + 1] !== '"') return at + 1;
  return -1;
}

/** A text that begins so is a formula to spreadsheets. An apostrophe before it makes it a text; so one that has some gets another. */
const formula = /^'*[=+\-@\t\r]/;

const guarded = /^'+[=+\-@\t\r]/;

const needsQuotes = /[",\r\n]/;

/**
 * A value as a cell: null and what is absent are empty, arrays and objects are JSON. A text is quoted where it must be, and where it could be
 * read as another value: an empty one, and one that is JSON.
 * @param guard texts that a spreadsheet would run as formulas get an apostrophe
 */
export function formatCsvCell(value: unknown, guard: boolean): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') return quotedIfNeeded(JSON.stringify(value));
  const text = guard && formula.test(value) ? `'${value}` : value;
  return text === '' || isJson(text) ? quoted(text) : quotedIfNeeded(text);
}

/** The text of a cell without the apostrophe of the guard. */
export function withoutGuard(text: string): string {
  return guarded.test(text) ? text.slice(1) : text;
}

function quotedIfNeeded(text: string): string {
  return needsQuotes.test(text) || text.trim() !== text ? quoted(text) : text;
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

const jsonBegins = /^\s*(?:[[{"\d-]|true|false|null)/;

function isJson(text: string): boolean {
  if (!jsonBegins.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    // It is no other value than the text.
    return false;
  }
}

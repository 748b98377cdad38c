/**
 * A file for `POST {collection}/import` (§4.19.9): its format, its first records for a preview, and its content with the columns renamed. The
 * server reads the whole file and alone judges it; here only its beginning is read.
 */
import { type Listed, resolve, type Schema } from './description.ts';
import { isObject } from './send.ts';

export const formats = {
  csv: { name: 'CSV with a header', type: 'text/csv' },
  ndjson: { name: 'NDJSON, a document a line', type: 'application/x-ndjson' },
  json: { name: 'JSON, a list of documents', type: 'application/json' },
} as const;

export type Format = keyof typeof formats;

export const recordsShown = 20;
/** Octets of the file that are read for the preview. */
const previewBytes = 256 * 1024;

export type Preview = {
  /** The columns of CSV, or the members of the records. */
  readonly columns: readonly string[];
  /** Cells of the columns as texts. */
  readonly rows: readonly (readonly string[])[];
  /** Octets of the header of CSV with its line break; 0 in other formats. */
  readonly headerBytes: number;
  /** The beginning of the file does not have the format. */
  readonly fault?: string;
};

export function formatOf(name: string): Format {
  const ending = name.toLowerCase().split('.').at(-1) ?? '';
  if (ending === 'json') return 'json';
  return ending === 'ndjson' || ending === 'jsonl' ? 'ndjson' : 'csv';
}

export async function previewOf(file: Blob, format: Format): Promise<Preview> {
  const bytes = new Uint8Array(await file.slice(0, previewBytes).arrayBuffer());
  const isWhole = bytes.length === file.size;
  try {
    // A character may be cut at the end.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: !isWhole });
    return format === 'csv' ? csvPreview(text, bytes, isWhole) : jsonPreview(text, format, isWhole);
  } catch (error) {
    const fault = error instanceof TypeError ? 'The file is not text in UTF-8.' : String(error);
    return { columns: [], rows: [], headerBytes: 0, fault };
  }
}

/** The content of a file with other names in the header of its CSV. */
export function withColumns(file: Blob, { columns, headerBytes }: Preview, names: readonly string[]): Blob {
  if (headerBytes === 0 || columns.every((column, at) => column === names[at])) return file;
  const header = names.map((name) => (/[",\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name));
  return new Blob([`${header.join(',')}\r\n`, file.slice(headerBytes)]);
}

function csvPreview(text: string, bytes: Uint8Array, isWhole: boolean): Preview {
  const records = csvRecords(text.replace(/^\uFEFF/, ''), isWhole);
  const [columns = [], ...rows] = records.filter((cells) => cells.length > 1 || cells[0] !== '');
  return { columns, rows: rows.slice(0, recordsShown), headerBytes: headerBytesOf(bytes) };
}

/** Records of RFC 4180. The last one of a beginning is left out, since it may be cut. */
function csvRecords(text: string, isWhole: boolean): string[][] {
  const records: string[][] = [];
  let cells: string[] = [];
  let cell = '';
  let isQuoted = false;
  for (let at = 0; at < text.length && records.length <= recordsShown * 2; at += 1) {
    const sign = text[at];
    if (isQuoted) {
      if (sign !== '"') cell += sign;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else isQuoted = false;
    } else if (sign === '"' && cell === '') isQuoted = true;
    else if (sign === ',') {
      cells.push(cell);
      cell = '';
    } else if (sign === '\n') {
      records.push([...cells, cell.replace(/\r$/, '')]);
      cells = [];
      cell = '';
    } else cell += sign;
  }
  if (isWhole && (cell !== '' || cells.length > 0)) records.push([...cells, cell]);
  return records;
}

const quote = 0x22;
const lineFeed = 0x0a;

function headerBytesOf(bytes: Uint8Array): number {
  let isQuoted = false;
  for (const [at, octet] of bytes.entries()) {
    if (octet === quote) isQuoted = !isQuoted;
    else if (octet === lineFeed && !isQuoted) return at + 1;
  }
  return bytes.length;
}

function jsonPreview(text: string, format: Format, isWhole: boolean): Preview {
  const texts = format === 'ndjson' ? linesOf(text, isWhole) : itemsOf(text);
  const records = texts.slice(0, recordsShown).map((each) => JSON.parse(each) as unknown);
  const columns = [...new Set(records.flatMap((each) => (isObject(each) ? Object.keys(each) : [])))];
  const rows = records.map((each) => columns.map((name) => cellOf(isObject(each) ? each[name] : undefined)));
  return { columns, rows, headerBytes: 0 };
}

function cellOf(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function linesOf(text: string, isWhole: boolean): readonly string[] {
  const lines = text.split('\n');
  return (isWhole ? lines : lines.slice(0, -1)).filter((line) => line.trim() !== '');
}

/** The texts of the first items of a list, of which the end may be missing. */
function itemsOf(text: string): readonly string[] {
  if (!text.trimStart().startsWith('[')) throw new SyntaxError('the file is no JSON list');
  const items: string[] = [];
  let [depth, start] = [0, 0];
  let [isText, isEscaped] = [false, false];
  for (let at = 0; at < text.length && items.length < recordsShown; at += 1) {
    const sign = text[at];
    if (isText) {
      if (!isEscaped && sign === '"') isText = false;
      isEscaped = !isEscaped && sign === '\\';
    } else if (sign === '"') isText = true;
    else if (sign === '{' || sign === '[') {
      depth += 1;
      if (depth === 2) start = at;
    } else if (sign === '}' || sign === ']') {
      depth -= 1;
      if (depth === 1) items.push(text.slice(start, at + 1));
    }
  }
  return items;
}

/** Members that administrators may set in a record, besides those of the documents. */
const madeMembers = ['id', 'createdAt', 'updatedAt', 'owner'];

/** The names that a column may have: members, and those within objects by `address.city`. */
export function namesOfColumns({ create, schema }: Listed): readonly string[] {
  return [...namesIn(create ?? schema), ...madeMembers];
}

function namesIn({ properties = {} }: Schema, before = ''): readonly string[] {
  return Object.entries(properties).flatMap(([name, each]) => {
    const schema = resolve(each);
    const own = `${before}${name}`;
    return schema.properties === undefined ? [own] : [own, ...namesIn(schema, `${own}.`)];
  });
}

/** The schema of a column; undefined: it names no member. */
export function schemaOfColumn({ create, schema }: Listed, column: string): Schema | undefined {
  if (madeMembers.includes(column))
    return resolve(schema.properties?.[column] ?? { type: ['string', 'null'] });
  const path = column.startsWith('/') ? column.slice(1).split('/') : column.split('.');
  return path.reduce<Schema | undefined>((at, name) => {
    const inner = at === undefined ? undefined : resolve(at).properties?.[name];
    return inner === undefined ? undefined : resolve(inner);
  }, create ?? schema);
}

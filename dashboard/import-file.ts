/**
 * A file for `POST {collection}/import` (§4.19.9): its format, its first records for a preview, and the members that its columns are. The
 * server reads the whole file and alone judges it; here only its beginning is read.
 */
import { type Listed, listOf, resolve, type Schema } from './description.ts';
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
  /** The beginning of the file does not have the format. */
  readonly fault?: string;
};

export function formatOf(name: string): Format {
  const ending = name.toLowerCase().split('.').at(-1) ?? '';
  if (ending === 'json') return 'json';
  return ending === 'ndjson' || ending === 'jsonl' ? 'ndjson' : 'csv';
}

/** @param hasHeader the first record of CSV names the columns */
export async function previewOf(file: Blob, format: Format, hasHeader: boolean): Promise<Preview> {
  const bytes = new Uint8Array(await file.slice(0, previewBytes).arrayBuffer());
  const isWhole = bytes.length === file.size;
  try {
    // A character may be cut at the end.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: !isWhole });
    return format === 'csv' ? csvPreview(text, hasHeader, isWhole) : jsonPreview(text, format, isWhole);
  } catch (error) {
    const fault = error instanceof TypeError ? 'The file is not text in UTF-8.' : String(error);
    return { columns: [], rows: [], fault };
  }
}

/** The parameter `columns` of an import: the members of the columns as a record of CSV. */
export function columnsText(names: readonly string[]): string {
  return names.map((name) => (/[",\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name)).join(',');
}

function csvPreview(text: string, hasHeader: boolean, isWhole: boolean): Preview {
  const records = csvRecords(text.replace(/^\uFEFF/, ''), isWhole);
  const filled = records.filter((cells) => cells.length > 1 || cells[0] !== '');
  const [first = []] = filled;
  const columns = hasHeader ? first : first.map((_, at) => `Column ${at + 1}`);
  return { columns, rows: filled.slice(Number(hasHeader)).slice(0, recordsShown) };
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

function jsonPreview(text: string, format: Format, isWhole: boolean): Preview {
  const texts = format === 'ndjson' ? linesOf(text, isWhole) : itemsOf(text);
  const records = texts.slice(0, recordsShown).map((each) => JSON.parse(each) as unknown);
  const columns = [...new Set(records.flatMap((each) => (isObject(each) ? Object.keys(each) : [])))];
  const rows = records.map((each) => columns.map((name) => cellOf(isObject(each) ? each[name] : undefined)));
  return { columns, rows };
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

/** Members by which a reference may find its document: those that may be unique. The server knows which are. */
export function keysOfReferences({ references }: Listed): readonly string[] {
  return [...references].flatMap(([member, path]) => {
    const properties = Object.entries(listOf(path)?.schema.properties ?? {});
    return properties.flatMap(([name, each]) => {
      const { type, format, ...schema } = resolve(each);
      const isKey = (type === 'string' || type === 'integer') && format !== 'date-time';
      return isKey && schema['x-references'] === undefined && schema.enum === undefined && name !== 'id'
        ? [`${member}.${name}`]
        : [];
    });
  });
}

/** The schema of a column; undefined: it names no member. */
export function schemaOfColumn(list: Listed, column: string): Schema | undefined {
  const { create, schema, references } = list;
  const [reference = '', ...key] = column.split('.');
  const target = key.length === 1 ? listOf(references.get(reference) ?? '') : undefined;
  if (target !== undefined) return resolve(target.schema.properties?.[key[0] ?? '']);
  if (madeMembers.includes(column))
    return resolve(schema.properties?.[column] ?? { type: ['string', 'null'] });
  const path = column.startsWith('/') ? column.slice(1).split('/') : column.split('.');
  return path.reduce<Schema | undefined>((at, name) => {
    const inner = at === undefined ? undefined : resolve(at).properties?.[name];
    return inner === undefined ? undefined : resolve(inner);
  }, create ?? schema);
}

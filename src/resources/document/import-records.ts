/**
 * Reads the records of an import (§4.19.9) as items of a bulk request (bulk-content.ts): a row of CSV by the columns of its header, a line of
 * NDJSON or an item of a JSON array as it is. Columns are members, nested ones by `address.city` or `/address/city`, and the schema says
 * what the text of a cell is. A content thread does this for long batches, so everything here crosses to a thread and back.
 */
import { isNode, type SchemaNode } from '../../config/declared-schema.ts';
import type { Problem } from '../../http/problem.ts';
import { type CsvCell, parseCsvRecord, withoutGuard } from '../../http/syntax/csv.ts';
import { type Json, parseJson } from '../../http/syntax/json.ts';
import { formatJsonPointer, parseJsonPointer } from '../../http/syntax/json-pointer.ts';
import {
  type ContentLimits,
  decodeText,
  listBranches,
  type ScalarKind,
  scalarKinds,
} from '../../kernel/content/content-shape.ts';
import { type Collection, ownerMember } from '../../model/collection.ts';
import { isMembers, type Members, setMember } from '../../model/json-value.ts';
import { type BulkItem, type BulkReading, type BulkWorkshop, type How, itemReader } from './bulk-content.ts';
import type { RecordBatch } from './record-cutter.ts';

export type Column = {
  readonly path: readonly string[];
  /** Scalars that a cell may be. */
  readonly kinds: ReadonlySet<ScalarKind>;
  /** A cell may be JSON: an array, an object, or whatever the schema leaves open. */
  readonly isJson: boolean;
};

export type ImportReading = Omit<BulkReading, 'itemsMax'> & {
  readonly how: How;
  /** Absent: records are JSON. */
  readonly columns?: readonly Column[];
  readonly recordBytesMax: number;
};

type ImportWorkshop = BulkWorkshop & { readonly contentLimits: ContentLimits };

/** Reads and checks the records of a batch, in their order. */
export function readRecords(
  workshop: ImportWorkshop,
  { bytes, records }: RecordBatch,
  reading: ImportReading,
): readonly BulkItem[] {
  const read = itemReader(workshop, reading.how, reading);
  const { columns, recordBytesMax } = reading;
  const { jsonDepthMax: depthMax, jsonMembersMax: keysMax } = workshop.contentLimits;
  const bounds = { depthMax, keysMax };
  const parse = (text: string) =>
    columns === undefined ? readJson(text, bounds) : readRow(text, columns, bounds);
  return records.map(({ start, end, isTooLong }): BulkItem => {
    if (isTooLong === true) {
      const message = `the record is longer than ${recordBytesMax} octets (COMITY_BULK_BYTES_MAX)`;
      return { problem: { code: 'content_too_large', message } };
    }
    const text = decodeText(bytes.subarray(start, end));
    if (text === undefined) return malformed('the record is not UTF-8');
    const value = parse(text);
    return 'problem' in value ? value : read(value.value);
  });
}

type Value = { readonly value: unknown };
type Refused = { readonly problem: Problem };
type JsonBounds = { readonly depthMax: number; readonly keysMax: number };

function malformed(message: string, column?: number): Refused {
  return {
    problem: { code: 'content_malformed', message, ...(column === undefined ? {} : { context: { column } }) },
  };
}

function readJson(text: string, bounds: JsonBounds): Value | Refused {
  const result = parseJson(text, bounds);
  if (!result.ok) return malformed(`malformed JSON: ${result.message} (at ${result.offset})`);
  return isMembers(result.value) ? { value: result.value } : malformed('the record must be a JSON object');
}

function readRow(text: string, columns: readonly Column[], bounds: JsonBounds): Value | Refused {
  const row = parseCsvRecord(text, columns.length);
  if (!row.ok) return malformed(`cell ${row.column} ${row.message}`, row.column);
  const { cells } = row;
  if (cells.length !== columns.length)
    return malformed(`the record has ${cells.length} cells, and the header ${columns.length}`, cells.length);
  const members: Members = {};
  for (const [at, column] of columns.entries()) {
    const value = valueOfCell(cells[at] ?? absent, column, bounds);
    if (value !== undefined) place(members, column.path, value);
  }
  return { value: members };
}

const absent: CsvCell = { text: '', isQuoted: false };

/** JSON's numbers: `007` and `1,5` are texts, which the schema refuses or takes. */
const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Undefined: the member is left out. A text that is no value of the schema stays a text, and the check of the document says what is wrong. */
function valueOfCell(
  { text, isQuoted }: CsvCell,
  { kinds, isJson }: Column,
  bounds: JsonBounds,
): Json | undefined {
  if (text === '' && !isQuoted) return kinds.has('null') ? null : undefined;
  // Where a text is as good as another value, the quotes tell them apart (formatCsvCell).
  const isText =
    kinds.has('string') && (isQuoted || (!isJson && kinds.size - Number(kinds.has('null')) === 1));
  if (isText) return withoutGuard(text);
  const bare = text.trim();
  if (kinds.has('number') && number.test(bare)) return parsed(bare, bounds) ?? text;
  const word = bare.toLowerCase();
  if (kinds.has('boolean') && (word === 'true' || word === 'false')) return word === 'true';
  if (isJson) {
    const value = parsed(bare, bounds);
    if (value !== undefined) return value;
  }
  return withoutGuard(text);
}

function parsed(text: string, bounds: JsonBounds): Json | undefined {
  const result = parseJson(text, bounds);
  return result.ok ? result.value : undefined;
}

function place(members: Members, path: readonly string[], value: Json): void {
  let at = members;
  for (const name of path.slice(0, -1)) {
    const inner = Object.hasOwn(at, name) ? at[name] : undefined;
    const next: Members = inner !== undefined && isMembers(inner) ? inner : {};
    setMember(at, name, next);
    at = next;
  }
  setMember(at, path.at(-1) ?? '', value);
}

// The header of CSV.

export type Header =
  | { readonly columns: readonly Column[] }
  | { readonly column: number; readonly message: string };

export type HeaderCollection = Pick<Collection, 'schema' | 'fields'>;

/** @param text the first record @param columnsMax of one file */
export function readHeader(collection: HeaderCollection, text: string, columnsMax: number): Header {
  const row = parseCsvRecord(text, columnsMax);
  if (!row.ok) return { column: row.column, message: `the header's cell ${row.column} ${row.message}` };
  const columns: Column[] = [];
  const places = new Map<string, number>();
  const within = new Map<string, number>();
  for (const [index, { text: name }] of row.cells.entries()) {
    const column = columnOf(collection, name.trim());
    if (column === undefined) return { column: index + 1, message: unknownColumn(name, row.cells.length) };
    const [pointer = '', ...outer] = column.path.map((_, at) =>
      formatJsonPointer(column.path.slice(0, column.path.length - at)),
    );
    const other = within.get(pointer) ?? [pointer, ...outer].map((each) => places.get(each)).find(Boolean);
    if (other !== undefined)
      return { column: index + 1, message: `columns ${other} and ${index + 1} both set ${pointer}` };
    places.set(pointer, index + 1);
    for (const each of outer) within.set(each, index + 1);
    columns.push(column);
  }
  return { columns };
}

function unknownColumn(name: string, count: number): string {
  const hint = count === 1 && name.includes(';') ? ': cells are separated by commas' : '';
  return `unknown column ${JSON.stringify(name.slice(0, 200))}${hint}`;
}

const textKinds: ReadonlySet<ScalarKind> = new Set(['string']);
const nullableKinds: ReadonlySet<ScalarKind> = new Set(['string', 'null']);

/** The member that the name of a column means; undefined: there is none. */
function columnOf(collection: HeaderCollection, name: string): Column | undefined {
  if (name === '') return undefined;
  const root = collection.schema as unknown as SchemaNode;
  const literal = schemaAt(root, [name]);
  if (literal !== undefined) return typed([name], literal);
  if (name === ownerMember(collection)) return { path: [name], kinds: nullableKinds, isJson: false };
  if (name === 'id' || name === 'createdAt' || name === 'updatedAt')
    return { path: [name], kinds: textKinds, isJson: false };
  const path = name.startsWith('/') ? parseJsonPointer(name) : name.split('.');
  if (path === undefined) return undefined;
  const nested = schemaAt(root, path);
  return nested === undefined ? undefined : typed(path, nested);
}

/** The schema of a member, through objects alone. */
function schemaAt(root: SchemaNode, path: readonly string[]): SchemaNode | undefined {
  let at: SchemaNode | undefined = root;
  for (const name of path) at = at === undefined ? undefined : memberOf(at, name);
  return at;
}

function memberOf(node: SchemaNode, name: string): SchemaNode | undefined {
  const properties = isNode(node.properties) ? node.properties : {};
  const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
  if (isNode(own)) return own;
  for (const branch of listBranches(node)) {
    const found = memberOf(branch, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

function typed(path: readonly string[], schema: SchemaNode): Column {
  const kinds = scalarKinds(schema);
  return { path, kinds, isJson: kinds.size === 0 || hasStructure(schema) };
}

/** True if a value may be an array or an object. */
function hasStructure(schema: SchemaNode): boolean {
  const types = [schema.type].flat();
  return (
    types.includes('array') ||
    types.includes('object') ||
    '$ref' in schema ||
    isNode(schema.properties) ||
    listBranches(schema).some(hasStructure)
  );
}

/**
 * Reads the records of an import (§4.19.9) as items of a bulk request (bulk-content.ts): a row of CSV by the columns of its header, a line of
 * NDJSON or an item of a JSON array as it is. Columns are members, nested ones by `address.city` or `/address/city`, and the schema says
 * what the text of a cell is. A content thread does this for long batches, so everything here crosses to a thread and back.
 *
 * A reference may be an object with a unique key of its document in place of the id. A record whose keys are not resolved yet is given back
 * with them, and read again when they are.
 */
import { isNode, type SchemaNode } from '../../config/declared-schema.ts';
import type { FieldError, Problem } from '../../http/problem.ts';
import type { ProblemCode } from '../../http/problem-registry.ts';
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
import type { Field } from '../../model/field.ts';
import { isMembers, type Members, setMember } from '../../model/json-value.ts';
import { memberAt } from '../../model/matches.ts';
import { type BulkItem, type BulkReading, type BulkWorkshop, type How, itemReader } from './bulk-content.ts';
import type { RecordBatch } from './record-cutter.ts';

export type Column = {
  readonly path: readonly string[];
  /** Set for a part of the key of a reference: the path of its field, which is null where the cells of the key are empty and it may be. */
  readonly reference?: { readonly path: readonly string[]; readonly isNullable: boolean };
  /** Scalars that a cell may be. */
  readonly kinds: ReadonlySet<ScalarKind>;
  /** A cell may be JSON: an array, an object, or whatever the schema leaves open. */
  readonly isJson: boolean;
};

export type ImportReading = Omit<BulkReading, 'itemsMax'> & {
  readonly how: How;
  /** Absent: records are JSON. Null: the column is left out. */
  readonly columns?: readonly (Column | null)[];
  readonly recordBytesMax: number;
  /** Paths of the references whose documents keys may name. */
  readonly references: readonly (readonly string[])[];
  /** By the texts of the keys. */
  readonly resolved?: ReadonlyMap<string, Resolved>;
};

/** A key of a document that a reference names. */
export type ReferenceKey = { readonly field: string; readonly members: Members };

/** The id of the document, or why there is none. */
export type Resolved =
  | { readonly id: string }
  | { readonly code: 'reference_missing' | 'validation_failed'; readonly message: string };

/** A record with keys that must be resolved, by their texts. */
export type PendingRecord = { readonly keys: ReadonlyMap<string, ReferenceKey> };

export type ReadRecord = BulkItem | PendingRecord;

type ImportWorkshop = BulkWorkshop & { readonly contentLimits: ContentLimits };

/** Reads and checks the records of a batch, in their order. */
export function readRecords(
  workshop: ImportWorkshop,
  { bytes, records }: RecordBatch,
  reading: ImportReading,
): readonly ReadRecord[] {
  const read = itemReader(workshop, reading.how, reading);
  const { columns, recordBytesMax, references, resolved } = reading;
  const { jsonDepthMax: depthMax, jsonMembersMax: keysMax } = workshop.contentLimits;
  const bounds = { depthMax, keysMax };
  const parse = (text: string) =>
    columns === undefined ? readJson(text, bounds) : readRow(text, columns, bounds);
  return records.map(({ start, end, isTooLong }): ReadRecord => {
    if (isTooLong === true) {
      const message = `the record is longer than ${recordBytesMax} octets (COMITY_BULK_BYTES_MAX)`;
      return { problem: { code: 'content_too_large', message } };
    }
    const text = decodeText(bytes.subarray(start, end));
    if (text === undefined) return malformed('the record is not UTF-8');
    const value = parse(text);
    if ('problem' in value) return value;
    return withReferences(value.value, references, resolved) ?? read(value.value);
  });
}

/** Puts ids in the place of keys. @returns why the record cannot be read, or not yet */
function withReferences(
  members: Members,
  references: ImportReading['references'],
  resolved: ImportReading['resolved'],
): Refused | PendingRecord | undefined {
  const keys = new Map<string, ReferenceKey>();
  const errors: FieldError[] = [];
  let code: ProblemCode | undefined;
  for (const path of references) {
    const key = memberAt(members, path);
    if (!isMembers(key)) continue;
    const field = path.join('.');
    const text = JSON.stringify([field, key]);
    const found = resolved?.get(text);
    if (found === undefined) keys.set(text, { field, members: key });
    else if ('id' in found) place(members, path, found.id);
    else {
      const [only, ...others] = Object.keys(key);
      const at = only === undefined || others.length > 0 ? path : [...path, only];
      errors.push({ pointer: formatJsonPointer(at), message: found.message });
      code ??= found.code;
    }
  }
  if (keys.size > 0) return { keys };
  return code === undefined ? undefined : { problem: { code, errors } };
}

type Value = { readonly value: Members };
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

function readRow(text: string, columns: readonly (Column | null)[], bounds: JsonBounds): Value | Refused {
  const row = parseCsvRecord(text, columns.length);
  if (!row.ok) return malformed(`cell ${row.column} ${row.message}`, row.column);
  const { cells } = row;
  if (cells.length !== columns.length)
    return malformed(`the record has ${cells.length} cells, and the header ${columns.length}`, cells.length);
  const members: Members = {};
  for (const [at, column] of columns.entries()) {
    if (column === null) continue;
    const cell = valueOfCell(cells[at] ?? absent, column, bounds);
    if ('fault' in cell) return malformed(cell.fault, at + 1);
    const { reference } = column;
    if (cell.value !== undefined) place(members, column.path, cell.value);
    else if (reference?.isNullable === true && memberAt(members, reference.path) === undefined)
      place(members, reference.path, null);
  }
  return { value: members };
}

const absent: CsvCell = { text: '', isQuoted: false };

/** JSON's numbers: `007` and `1,5` are texts, which the schema refuses or takes. */
const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** `value` undefined: the member is left out. */
type CellValue = { readonly value: Json | undefined } | { readonly fault: string };

/** Arrays and objects begin so, which no scalar does. */
const structured = /^[[{]/;

/** A text that is no value of the schema stays a text, and the check of the document says what is wrong. */
function valueOfCell({ text, isQuoted }: CsvCell, { kinds, isJson }: Column, bounds: JsonBounds): CellValue {
  if (text === '' && !isQuoted) return { value: kinds.has('null') ? null : undefined };
  // Where a text is as good as another value, the quotes tell them apart (formatCsvCell).
  const isText =
    kinds.has('string') && (isQuoted || (!isJson && kinds.size - Number(kinds.has('null')) === 1));
  if (isText) return { value: withoutGuard(text) };
  const bare = text.trim();
  if (kinds.has('number') && number.test(bare)) {
    const result = parseJson(bare, bounds);
    return { value: result.ok ? result.value : text };
  }
  const word = bare.toLowerCase();
  if (kinds.has('boolean') && (word === 'true' || word === 'false')) return { value: word === 'true' };
  if (isJson) {
    const result = parseJson(bare, bounds);
    if (result.ok) return result;
    // A text may begin like JSON, unless it is JSON beyond the limits.
    if (structured.test(bare) && (!kinds.has('string') || isJsonText(bare)))
      return { fault: `malformed JSON: ${result.message} (at ${result.offset})` };
  }
  return { value: withoutGuard(text) };
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
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

/** What the columns of a file are, or the column at fault. */
export type Header =
  | { readonly columns: readonly (Column | null)[] }
  | { readonly column: number; readonly message: string };

/** The keys by which a field may name its document; undefined: it is no reference. */
export type KeysOf = (field: string) => readonly (readonly Field[])[] | undefined;

export type ColumnNames = Pick<Collection, 'schema' | 'fields'> & { readonly keysOf: KeysOf };

/** @param text the first record @param columnsMax of one file */
export function readHeader(names: ColumnNames, text: string, columnsMax: number): Header {
  const row = parseCsvRecord(text, columnsMax);
  if (!row.ok) return { column: row.column, message: `the header's cell ${row.column} ${row.message}` };
  return readColumns(names, row.cells, false);
}

/** @param mayLeaveOut a column without a name is left out */
export function readColumns(names: ColumnNames, cells: readonly CsvCell[], mayLeaveOut: boolean): Header {
  const columns: (Column | null)[] = [];
  const places = new Map<string, number>();
  const within = new Map<string, number>();
  for (const [index, { text: name }] of cells.entries()) {
    if (mayLeaveOut && name.trim() === '') {
      columns.push(null);
      continue;
    }
    const column = columnOf(names, name.trim());
    if (column === undefined) return { column: index + 1, message: unknownColumn(name, names, cells.length) };
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

function unknownColumn(name: string, { keysOf }: ColumnNames, count: number): string {
  const shown = JSON.stringify(name.slice(0, 200));
  if (name.trim() === '') return 'a column has no name; the parameter columns leaves it out';
  const keys = keysOf(name.split('.', 1)[0] ?? '');
  if (keys !== undefined && name.includes('.')) {
    const known = keys.map((fields) => fields.map((field) => field.name).join(' with '));
    return `unknown column ${shown}: a reference is its id, or is found by ${known.join(', or by ')}`;
  }
  const hint = count === 1 && name.includes(';') ? ': cells are separated by commas' : '';
  return `unknown column ${shown}${hint}`;
}

const textKinds: ReadonlySet<ScalarKind> = new Set(['string']);
const nullableKinds: ReadonlySet<ScalarKind> = new Set(['string', 'null']);

/** The member that the name of a column means; undefined: there is none. */
function columnOf(names: ColumnNames, name: string): Column | undefined {
  if (name === '') return undefined;
  const root = names.schema as unknown as SchemaNode;
  const literal = schemaAt(root, [name]);
  if (literal !== undefined) return typed([name], literal);
  if (name === ownerMember(names)) return { path: [name], kinds: nullableKinds, isJson: false };
  if (name === 'id' || name === 'createdAt' || name === 'updatedAt')
    return { path: [name], kinds: textKinds, isJson: false };
  const path = name.startsWith('/') ? parseJsonPointer(name) : name.split('.');
  if (path === undefined) return undefined;
  const nested = schemaAt(root, path);
  return nested === undefined ? keyColumn(names, path) : typed(path, nested);
}

/** The column of a member of a key by which a reference finds its document. */
function keyColumn({ schema, keysOf }: ColumnNames, path: readonly string[]): Column | undefined {
  for (let length = 1; length < path.length; length += 1) {
    const own = path.slice(0, length);
    const keys = keysOf(own.join('.'));
    const rest = path.slice(length).join('.');
    const field = keys?.flat().find(({ name }) => name === rest);
    if (field === undefined) continue;
    const reference = schemaAt(schema as unknown as SchemaNode, own) ?? {};
    const isNullable = scalarKinds(reference).has('null');
    const kinds = kindsOfFields[field.type] ?? textKinds;
    return { path: [...own, rest], kinds, isJson: false, reference: { path: own, isNullable } };
  }
  return undefined;
}

const numberKinds: ReadonlySet<ScalarKind> = new Set(['number']);
const kindsOfFields: Readonly<Partial<Record<Field['type'], ReadonlySet<ScalarKind>>>> = {
  number: numberKinds,
  integer: numberKinds,
  boolean: new Set(['boolean']),
};

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

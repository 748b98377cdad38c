/** The query parameters of an import (§4.19.9), and the parameters of its media type. */
import type { Problem } from '../../http/problem.ts';
import { parseCsvRecord } from '../../http/syntax/csv.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import type { Ask } from '../../kernel/resource.ts';
import { isAdministrator } from '../../model/principal.ts';
import {
  bulkModes,
  existings,
  type How,
  readNaming,
  type ImportOptions as WriteOptions,
} from '../document/bulk-content.ts';
import { type Column, type ColumnNames, readColumns } from '../document/import-records.ts';
import type { RecordFormat } from '../document/record-cutter.ts';
import { keysOfReferences } from './import-references.ts';
import type { Served } from './served-collection.ts';

const formats: ReadonlyMap<string, RecordFormat> = new Map([
  ['text/csv', 'csv'],
  ['application/x-ndjson', 'ndjson'],
  ['application/json', 'json'],
]);

export const importTypes: readonly string[] = [...formats.keys()];

export type ImportOptions = {
  readonly format: RecordFormat;
  readonly how: How;
  readonly atomic: boolean;
  readonly dryRun: boolean;
  readonly events: boolean;
  /** What the columns of CSV are, in place of the names in its header. Absent: the header says it. */
  readonly columns: readonly (Column | null)[] | undefined;
  /** The first record of CSV is a header. */
  readonly hasHeader: boolean;
};

/** Columns of CSV; a header has a bound of its own because it is read on the event loop. */
export const columnsMax = 1000;

const parameterNames = ['dryRun', 'mode', 'key', 'atomic', 'existing', 'events', 'columns'];
const parametersMax = 20;

export function readImportOptions(
  served: Served,
  ask: Ask,
  mediaType: MediaType,
): ImportOptions | { readonly problem: Problem } {
  const given = new Map<string, string>();
  for (const [name, value] of parseQueryString(ask.query ?? '', parametersMax) ?? [['?', '']]) {
    if (name === 'api_key') continue;
    if (!parameterNames.includes(name))
      return refuse(`unknown parameter ${JSON.stringify(name)}: ${parameterNames.join(', ')} are known`);
    if (given.has(name)) return refuse(`${name} may come only once`);
    given.set(name, value);
  }
  for (const name of ['dryRun', 'atomic', 'events'])
    if (!['true', 'false', undefined].includes(given.get(name)))
      return refuse(`${name} must be true or false`);
  const how = readHow(served, ask, given);
  if ('problem' in how) return how;
  const columns = readCsv(served, ask, mediaType, given.get('columns'));
  if ('problem' in columns) return columns;
  return {
    ...{ how, ...columns },
    atomic: given.get('atomic') === 'true',
    dryRun: given.get('dryRun') === 'true',
    events: given.get('events') !== 'false',
  };
}

function refuse(message: string): { readonly problem: Problem } {
  return { problem: { code: 'query_parameter_invalid', message } };
}

function readHow(
  { collection }: Served,
  { principal }: Ask,
  given: ReadonlyMap<string, string>,
): How | { readonly problem: Problem } {
  const naming = readNaming(collection, {
    mode: given.get('mode') ?? bulkModes[0],
    key: given.get('key')?.split(','),
  });
  if ('pointer' in naming) return refuse(`${naming.pointer.slice(1)} ${naming.message}`);
  const existing = existings.find((each) => each === given.get('existing'));
  if (given.has('existing') && existing === undefined)
    return refuse('existing must be refuse, skip or update');
  if (existing !== undefined && naming.mode !== 'create') return refuse('existing is for the mode create');
  const isOperator = isAdministrator(principal);
  const events = given.get('events') !== 'false';
  if (!isOperator && (given.has('existing') || !events)) {
    const message = 'only an administrator may import with existing or without events';
    return { problem: { code: 'forbidden', message } };
  }
  return isOperator ? howOfOperator(naming, events, existing) : { ...naming, import: undefined };
}

/** Records of an administrator may have what only the server sets otherwise. */
function howOfOperator(
  { mode, key }: Pick<How, 'mode' | 'key'>,
  events: boolean,
  existing: WriteOptions['existing'] = 'refuse',
): How {
  if (mode === 'create') return { mode, key, import: { existing, events } };
  if (mode === 'replace' && key === undefined)
    return { mode: 'create', key, import: { existing: 'update', events } };
  return { mode, key, import: undefined, takesGiven: true };
}

/** The names that columns of this principal may have. */
export function columnNames(
  { collection, serving }: Served,
  { principal }: Pick<Ask, 'principal'>,
): ColumnNames {
  return { ...collection, keysOf: keysOfReferences(collection, serving, principal) };
}

/** `columns` names the columns as a header would. `text/csv; header=absent` (RFC 4180 §3) needs it. */
function readCsv(
  served: Served,
  ask: Ask,
  { type, parameters }: MediaType,
  columns: string | undefined,
): Pick<ImportOptions, 'format' | 'columns' | 'hasHeader'> | { readonly problem: Problem } {
  const format = formats.get(type);
  if (format === undefined) throw new Error(`an import takes no ${type}`);
  const header = format === 'csv' ? parameters.get('header')?.toLowerCase() : undefined;
  if (header !== undefined && header !== 'present' && header !== 'absent') {
    const message = `text/csv takes header=present or header=absent, not ${JSON.stringify(header.slice(0, 64))}`;
    return { problem: { code: 'media_type_unsupported', message } };
  }
  const hasHeader = header !== 'absent';
  if (columns === undefined) {
    if (hasHeader) return { format, columns: undefined, hasHeader };
    const message = 'text/csv; header=absent needs the parameter columns, such as columns=sku,,price';
    return refuse(message);
  }
  if (format !== 'csv') return refuse('columns is for text/csv');
  const names = parseCsvRecord(columns, columnsMax);
  if (!names.ok) return refuse(`columns: name ${names.column} ${names.message}`);
  const read = readColumns(columnNames(served, ask), names.cells, true);
  return 'columns' in read
    ? { format, columns: read.columns, hasHeader }
    : refuse(`columns: ${read.message}`);
}

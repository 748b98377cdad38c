/**
 * `comity import`: sends a file to `POST {collection}/import` while it is read, so that a file of any length takes little memory; the server
 * says which lines it refused. A repeated import skips what is there. Lines whose files are beside the file name uploads in their place.
 */
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { access, rename, rm, stat } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { formatCsvCell } from '../../http/syntax/csv.ts';
import { ignoreError, ownEmitter } from '../../observe/own-emitter.ts';
import { CommandFailure, exitCodes, usageFailure } from '../failure.ts';
import type { ServerClient } from '../server-client.ts';
import { type StatusLine, showStatusLine, type Terminal } from '../terminal.ts';
import type { Call } from './run-remote.ts';
import { FileTransfer, folderOf, hasFolder } from './transfer-files.ts';

type ImportArguments = {
  readonly collection?: string;
  readonly format?: keyof typeof mediaTypes;
  readonly mode: 'create' | 'replace' | 'merge' | 'upsert';
  readonly key?: string;
  readonly existing: 'skip' | 'update' | 'refuse';
  readonly columns?: string;
  readonly header: boolean;
  readonly events: boolean;
  readonly dryRun?: boolean;
  readonly atomic?: boolean;
};

const mediaTypes = { csv: 'text/csv', ndjson: 'application/x-ndjson', json: 'application/json' };

type Counts = {
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly refused: number;
};

/** What the server answers; `error`: it could not read on. */
type ImportAnswer = Counts & {
  readonly errors: readonly {
    readonly line: number;
    readonly column?: number;
    readonly member?: string;
    readonly message: string;
  }[];
  readonly errorsMore?: number;
  readonly error?: string;
};

export async function importDocuments(call: Call<ImportArguments>): Promise<number> {
  const { terminal, names, options, json } = call;
  const [file = ''] = names;
  const collection = collectionOf(file, options.collection);
  const format = options.format ?? formatOf(file);
  if (format !== 'csv' && (options.columns !== undefined || !options.header))
    throw usageFailure('--columns and --no-header are for CSV');
  const server = call.server();
  const input = file === '-' ? terminal.stdin : await openFile(file);
  const files =
    file !== '-' && (await hasFolder(file)) ? new FileTransfer(server, folderOf(file)) : undefined;
  if (files !== undefined && format !== 'ndjson')
    throw usageFailure(`${folderOf(file)} goes with NDJSON; move it away to import ${file} without files`);
  const status = showStatusLine(terminal.stderr);
  let skipped = 0;
  const lines =
    files === undefined
      ? input
      : withFiles(input, { files, collection, options, skip: () => (skipped += 1) });
  try {
    const answer = (await server.stream(
      `/${encodeURIComponent(collection)}/import?${parametersOf(options)}`,
      {
        type: options.header ? mediaTypes[format] : `${mediaTypes[format]}; header=absent`,
        content: counted(lines, status),
        subject: `collection ${collection}`,
      },
    )) as ImportAnswer;
    status.end();
    return finish(terminal, { file, collection, json }, { ...answer, unchanged: answer.unchanged + skipped });
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    const where = `the import of ${collection} stopped: ${error.message}`;
    throw new CommandFailure(`${where}; run it again to continue`, { cause: error });
  } finally {
    status.end();
    if (input !== terminal.stdin) input.destroy();
  }
}

function collectionOf(file: string, named: string | undefined): string {
  if (named !== undefined) return named;
  const name = file === '-' ? '' : basename(file, extname(file));
  if (name !== '') return name;
  throw usageFailure('name the collection of what comes from stdin: --collection tickets');
}

function formatOf(file: string): keyof typeof mediaTypes {
  const ending = extname(file).slice(1).toLowerCase();
  return ending === 'csv' || ending === 'json' ? ending : 'ndjson';
}

async function openFile(file: string): Promise<Readable> {
  try {
    if (!(await stat(file)).isFile()) throw new Error('it is not a file');
    return ownEmitter(createReadStream(file), ignoreError);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`${file} cannot be read: ${reason}`, { cause: error });
  }
}

function parametersOf(options: ImportArguments): URLSearchParams {
  const { mode, key, existing, columns, events, dryRun, atomic } = options;
  return new URLSearchParams({
    ...(mode === 'create' ? { existing } : { mode }),
    ...(key === undefined ? {} : { key }),
    ...(columns === undefined ? {} : { columns }),
    ...(events ? {} : { events: 'false' }),
    ...(dryRun === true ? { dryRun: 'true' } : {}),
    ...(atomic === true ? { atomic: 'true' } : {}),
  });
}

const mebibyte = 1024 * 1024;

async function* counted(
  content: AsyncIterable<Uint8Array | string>,
  status: StatusLine,
): AsyncGenerator<Uint8Array | string> {
  let octets = 0;
  for await (const chunk of content) {
    octets += Buffer.byteLength(chunk);
    status.show(`${(octets / mebibyte).toFixed(1)} MiB`);
    yield chunk;
  }
}

type WithFiles = {
  readonly files: FileTransfer;
  readonly collection: string;
  readonly options: ImportArguments;
  /** Called for a document that the server has: it needs no octets. */
  readonly skip: () => void;
};

/** The lines with uploads in place of their files. A line that is skipped becomes blank, so that the others keep their numbers. */
async function* withFiles(
  input: Readable,
  { files, collection, options, skip }: WithFiles,
): AsyncGenerator<string> {
  for await (const line of linesOf(input)) {
    const document = documentOf(line);
    const isSkipping = options.mode === 'create' && options.existing === 'skip';
    if (document === undefined) yield `${line}\n`;
    else if (isSkipping && (await files.has(collection, document))) {
      skip();
      yield '\n';
    } else yield `${JSON.stringify(await files.send(document))}\n`;
  }
}

async function* linesOf(input: Readable): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of input.setEncoding('utf8')) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}

/** Undefined: the server says what is wrong with the line. */
function documentOf(line: string): Document | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Document)
      : undefined;
  } catch {
    // No JSON.
    return undefined;
  }
}

type Imported = { readonly file: string; readonly collection: string; readonly json: boolean };

function finish(terminal: Terminal, { file, collection, json }: Imported, answer: ImportAnswer): number {
  const { created, updated, unchanged, refused, errors, errorsMore = 0, error } = answer;
  for (const { line, column, member = '', message } of errors) {
    const place = column === undefined ? String(line) : `${line}:${column}`;
    terminal.err(`comity: ${file}:${place}: ${`${member.slice(1)} ${message}`.trim()}`);
  }
  if (errorsMore > 0) terminal.err(`comity: ${errorsMore} more faults are not shown`);
  if (json) terminal.out(JSON.stringify({ collection, created, updated, unchanged, refused }, undefined, 2));
  else
    terminal.out(
      `${collection}: ${created} created, ${updated} updated, ${unchanged} unchanged, ${refused} refused`,
    );
  if (error !== undefined) throw new CommandFailure(error);
  return refused === 0 ? exitCodes.done : exitCodes.failed;
}

// `comity export`: reads `GET {collection}/bulk` page by page, by id, and writes each document as a line of NDJSON or a
// row of CSV. A file appears under its name only when it is whole.

type ExportArguments = {
  readonly format: 'ndjson' | 'csv';
  readonly filter?: string;
  readonly columns?: readonly string[];
  readonly output?: string;
  readonly files: boolean;
  /** Cells of CSV that a spreadsheet would run as formulas are guarded. */
  readonly guard: boolean;
  /** CSV begins with a byte order mark. */
  readonly bom?: boolean;
};

type Document = Readonly<Record<string, unknown>>;

type Page = { readonly items: readonly Document[]; readonly nextCursor: string | null };

const pageItems = 500;
const reserved: ReadonlySet<string> = new Set([
  'cursor',
  'page',
  'limit',
  'per_page',
  'sort',
  'order',
  'fields',
]);

export async function exportDocuments({
  terminal,
  server: open,
  names: [collection = ''],
  options,
  json,
}: Call<ExportArguments>): Promise<number> {
  const { format, output } = options;
  const { guard } = options;
  if (options.columns !== undefined && format !== 'csv') throw usageFailure('--columns is for --format csv');
  if (options.bom === true && format !== 'csv') throw usageFailure('--bom is for --format csv');
  const server = open();
  const source = { server, collection, filter: filterOf(options.filter) };
  const status = showStatusLine(terminal.stderr);
  const target = output === undefined ? undefined : await openTarget(output);
  const stream = target?.stream ?? terminal.stdout;
  const files =
    output === undefined || format === 'csv' || !options.files
      ? undefined
      : new FileTransfer(server, folderOf(output));
  let count = 0;
  try {
    const columns = format === 'csv' ? (options.columns ?? (await membersOf(source))) : undefined;
    if (options.bom === true) await write(stream, '\ufeff');
    if (columns !== undefined) await write(stream, csvRow(columns, guard));
    for await (const items of pagesOf(source)) {
      await files?.save(items);
      const rows = items.map((item) =>
        columns === undefined
          ? `${JSON.stringify(item)}\n`
          : csvRow(
              columns.map((name) => item[name]),
              guard,
            ),
      );
      await write(stream, rows.join(''));
      count += items.length;
      status.show(`${count} documents`);
    }
    await target?.finish();
  } catch (error) {
    await target?.discard();
    throw error;
  } finally {
    status.end();
  }
  const octets = files === undefined || files.count === 0 ? {} : { files: files.count };
  const written = {
    ...{ collection, documents: count, ...octets },
    ...(output === undefined ? {} : { file: output }),
  };
  if (output === undefined) terminal.err(`comity: ${count} documents of ${collection}`);
  else
    terminal.out(
      json ? JSON.stringify(written, undefined, 2) : `${output}: ${count} documents of ${collection}`,
    );
  return exitCodes.done;
}

/** @throws CommandFailure if the filter names what pages and forms of the export are made of */
function filterOf(written = ''): string {
  const pairs = new URLSearchParams(written);
  for (const name of pairs.keys()) {
    if (!reserved.has(name)) continue;
    throw usageFailure(`--filter takes conditions on fields, not ${name}`);
  }
  const text = pairs.toString();
  return text === '' ? '' : `&${text}`;
}

type Source = { readonly server: ServerClient; readonly collection: string; readonly filter: string };

async function* pagesOf({ server, collection, filter }: Source): AsyncGenerator<readonly Document[]> {
  const path = `/${encodeURIComponent(collection)}/bulk?limit=${pageItems}${filter}`;
  let cursor: string | null = null;
  do {
    const from: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = (await server.ask('GET', path + from, { subject: `collection ${collection}` })) as Page;
    yield page.items;
    cursor = page.nextCursor;
  } while (cursor !== null);
}

/** The members of all documents, in the order of their first appearance. CSV needs them before its first row. */
async function membersOf(source: Source): Promise<readonly string[]> {
  const names = new Set<string>();
  for await (const items of pagesOf(source)) {
    for (const item of items) for (const name of Object.keys(item)) names.add(name);
  }
  return [...names];
}

/** RFC 4180: CRLF, and quotes where they are needed. */
function csvRow(values: readonly unknown[], guard: boolean): string {
  return `${values.map((value) => formatCsvCell(value, guard)).join(',')}\r\n`;
}

async function write(stream: Writable, text: string): Promise<void> {
  if (!stream.write(text)) await once(stream, 'drain');
}

type Target = {
  readonly stream: Writable;
  readonly finish: () => Promise<void>;
  readonly discard: () => Promise<void>;
};

async function openTarget(file: string): Promise<Target> {
  const exists = await access(file).then(
    () => true,
    () => false,
  );
  if (exists) throw new CommandFailure(`${file} exists already; remove it or choose another name`);
  const partial = `${file}.partial`;
  const stream = ownEmitter(createWriteStream(partial), ignoreError);
  try {
    await once(stream, 'open');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`${file} cannot be written: ${reason}`, { cause: error });
  }
  return {
    stream,
    async finish() {
      stream.end();
      await finished(stream);
      await rename(partial, file);
    },
    async discard() {
      stream.destroy();
      await rm(partial, { force: true });
    },
  };
}

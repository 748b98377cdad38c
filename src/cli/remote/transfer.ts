/**
 * `comity import`: sends the documents of an NDJSON file to `POST {collection}/bulk` in batches, in their order. Each
 * document is a unit of its own, so a refused line leaves the others. A repeated import skips what is there.
 */
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { access, rename, rm, stat } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { ignoreError, ownEmitter } from '../../observe/own-emitter.ts';
import { CommandFailure, exitCodes, usageFailure } from '../failure.ts';
import type { ServerClient } from '../server-client.ts';
import { showStatusLine, type Terminal } from '../terminal.ts';
import type { Call } from './run-remote.ts';

type ImportArguments = {
  readonly collection?: string;
  readonly existing: 'skip' | 'update' | 'refuse';
  readonly events: boolean;
  readonly batch: number;
};

type ItemResult = {
  readonly status: number;
  readonly unchanged?: boolean;
  readonly error?: string;
  readonly errors?: readonly { readonly pointer: string; readonly message: string }[];
};

type Counts = {
  created: number;
  updated: number;
  unchanged: number;
  refused: number;
  withoutId: number;
};

/** Refused lines that are printed; the others are counted. */
const faultsShownMax = 100;

export async function importDocuments({
  terminal,
  server: open,
  names: [file = ''],
  options,
  json,
}: Call<ImportArguments>): Promise<number> {
  const collection = collectionOf(file, options.collection);
  const server = open();
  const input = file === '-' ? terminal.stdin : await openFile(file);
  const counts: Counts = { created: 0, updated: 0, unchanged: 0, refused: 0, withoutId: 0 };
  const status = showStatusLine(terminal.stderr);
  let last = 0;
  try {
    for await (const batch of batchesOf(input, options.batch)) {
      const faults = await sendBatch(server, collection, batch, { options, counts });
      for (const { number, message } of faults) {
        counts.refused += 1;
        if (counts.refused <= faultsShownMax) terminal.err(`comity: ${file}:${number}: ${message}`);
      }
      last = Math.max(last, ...[...batch.lines, ...batch.faults].map(({ number }) => number));
      status.show(`${last} lines`);
    }
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    const where = `the import of ${collection} stopped after line ${last}: ${error.message}`;
    throw new CommandFailure(`${where}; run it again to continue`, { cause: error });
  } finally {
    status.end();
    if (input !== terminal.stdin) input.destroy();
  }
  return finish(terminal, collection, counts, json);
}

function collectionOf(file: string, named: string | undefined): string {
  if (named !== undefined) return named;
  const name = file === '-' ? '' : basename(file, extname(file));
  if (name !== '') return name;
  throw usageFailure('name the collection of what comes from stdin: --collection tickets');
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

async function sendBatch(
  server: ServerClient,
  collection: string,
  { lines, faults }: Batch,
  { options, counts }: { readonly options: ImportArguments; readonly counts: Counts },
): Promise<readonly LineFault[]> {
  if (lines.length === 0) return faults;
  const { existing, events } = options;
  const items = lines.map(({ document }) => document);
  const answer = (await server.ask('POST', `/${encodeURIComponent(collection)}/bulk`, {
    json: { items, atomic: false, import: { existing, events } },
    subject: `collection ${collection}`,
  })) as { readonly items: readonly ItemResult[] };
  const refused: LineFault[] = [...faults];
  for (const [index, { number, document }] of lines.entries()) {
    const result = answer.items[index];
    if (!Object.hasOwn(document as object, 'id')) counts.withoutId += 1;
    if (result === undefined || result.error !== undefined)
      refused.push({ number, message: faultText(result) });
    else if (result.unchanged === true) counts.unchanged += 1;
    else if (result.status === 201) counts.created += 1;
    else counts.updated += 1;
  }
  return refused.sort((one, other) => one.number - other.number);
}

function faultText(result: ItemResult | undefined): string {
  if (result === undefined) return 'has no result in the response';
  const faults = (result.errors ?? []).map(({ pointer, message }) => `${pointer.slice(1)} ${message}`.trim());
  return faults.length === 0 ? String(result.error) : `${result.error}: ${faults.join('; ')}`;
}

function finish(terminal: Terminal, collection: string, counts: Counts, json: boolean): number {
  const { created, updated, unchanged, refused, withoutId } = counts;
  if (refused > faultsShownMax)
    terminal.err(`comity: ${refused - faultsShownMax} more refused lines are not shown`);
  if (json) terminal.out(JSON.stringify({ collection, created, updated, unchanged, refused }, undefined, 2));
  else
    terminal.out(
      `${collection}: ${created} created, ${updated} updated, ${unchanged} unchanged, ${refused} refused`,
    );
  if (withoutId > 0)
    terminal.err(`comity: ${withoutId} lines have no id; importing them again would create them again`);
  return refused === 0 ? exitCodes.done : exitCodes.failed;
}

// Lines of NDJSON in batches, each bounded in documents and in octets. A line that is no object is a fault of its own.

type Line = { readonly number: number; readonly document: unknown };

type LineFault = { readonly number: number; readonly message: string };

type Batch = { readonly lines: readonly Line[]; readonly faults: readonly LineFault[] };

/** Octets of documents after which a batch ends; a server takes 4 MiB by default. */
const batchBytesMax = 2 * 1024 * 1024;

/** Octets of one line, which the program holds at once. */
const lineBytesMax = 64 * 1024 * 1024;

const lineFeed = 0x0a;

async function* batchesOf(input: Readable, size: number): AsyncGenerator<Batch> {
  let lines: Line[] = [];
  let faults: LineFault[] = [];
  let octets = 0;
  for await (const { number, bytes } of linesOf(input)) {
    const text = bytes === undefined ? '' : bytes.toString('utf8').trim();
    if (bytes === undefined) faults.push({ number, message: `is longer than ${lineBytesMax} octets` });
    else if (text !== '') {
      const document = parsed(text);
      if (document === undefined) faults.push({ number, message: 'is not a JSON object' });
      else lines.push({ number, document });
      octets += bytes.length;
    }
    if (lines.length + faults.length < size && octets < batchBytesMax) continue;
    yield { lines, faults };
    lines = [];
    faults = [];
    octets = 0;
  }
  if (lines.length + faults.length > 0) yield { lines, faults };
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    // The caller reports the line.
    return undefined;
  }
}

type RawLine = {
  readonly number: number;
  /** Undefined: the line is too long. */
  readonly bytes: Buffer | undefined;
};

async function* linesOf(input: Readable): AsyncGenerator<RawLine> {
  let number = 1;
  let pieces: Buffer[] = [];
  let length = 0;
  const line = (): RawLine => {
    const bytes = length > lineBytesMax ? undefined : Buffer.concat(pieces);
    const ended = { number, bytes };
    number += 1;
    pieces = [];
    length = 0;
    return ended;
  };
  for await (const chunk of input) {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    let from = 0;
    for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, from)) {
      take(bytes.subarray(from, at));
      yield line();
      from = at + 1;
    }
    take(bytes.subarray(from));
  }
  if (length > 0) yield line();

  function take(piece: Buffer): void {
    length += piece.length;
    if (length > lineBytesMax) pieces = [];
    else if (piece.length > 0) pieces.push(piece);
  }
}

// `comity export`: reads `GET {collection}/bulk` page by page, by id, and writes each document as a line of NDJSON or a
// row of CSV. A file appears under its name only when it is whole.

type ExportArguments = {
  readonly format: 'ndjson' | 'csv';
  readonly filter?: string;
  readonly columns?: readonly string[];
  readonly output?: string;
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
  if (options.columns !== undefined && format !== 'csv') throw usageFailure('--columns is for --format csv');
  const server = open();
  const source = { server, collection, filter: filterOf(options.filter) };
  const status = showStatusLine(terminal.stderr);
  const target = output === undefined ? undefined : await openTarget(output);
  const stream = target?.stream ?? terminal.stdout;
  let count = 0;
  try {
    const columns = format === 'csv' ? (options.columns ?? (await membersOf(source))) : undefined;
    if (columns !== undefined) await write(stream, csvRow(columns));
    for await (const items of pagesOf(source)) {
      const rows = items.map((item) =>
        columns === undefined ? `${JSON.stringify(item)}\n` : csvRow(columns.map((name) => item[name])),
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
  const written = { collection, documents: count, ...(output === undefined ? {} : { file: output }) };
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

/** RFC 4180: CRLF, quotes where they are needed. Arrays and objects are JSON; absent members and null are empty. */
function csvRow(values: readonly unknown[]): string {
  return `${values.map(csvValue).join(',')}\r\n`;
}

const needsQuotes = /[",\r\n]/;

function csvValue(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return needsQuotes.test(text) || text.trim() !== text ? `"${text.replaceAll('"', '""')}"` : text;
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

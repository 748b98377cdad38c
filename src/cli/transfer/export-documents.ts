/**
 * `comity export`: reads `GET {collection}/bulk` page by page, by id, and writes each document as a line of NDJSON or a
 * row of CSV. A file appears under its name only when it is whole.
 */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { access, rename, rm } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { ignoreError, ownEmitter } from '../../observe/own-emitter.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { showStatusLine } from '../progress.ts';
import type { Call } from '../remote/remote-command.ts';
import type { ServerClient } from '../server-client.ts';

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
  if (options.columns !== undefined && format !== 'csv')
    throw new CommandFailure('--columns is for --format csv', { exitCode: exitCodes.usage });
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
    throw new CommandFailure(`--filter takes conditions on fields, not ${name}`, {
      exitCode: exitCodes.usage,
    });
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

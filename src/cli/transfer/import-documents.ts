/**
 * `comity import`: sends the documents of an NDJSON file to `POST {collection}/bulk` in batches, in their order. Each
 * document is a unit of its own, so a refused line leaves the others. A repeated import skips what is there.
 */

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import type { Readable } from 'node:stream';
import { ignoreError, ownEmitter } from '../../observe/own-emitter.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { showStatusLine } from '../progress.ts';
import type { Call } from '../remote/remote-command.ts';
import type { ServerClient } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';

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
  throw new CommandFailure('name the collection of what comes from stdin: --collection tickets', {
    exitCode: exitCodes.usage,
  });
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

/** Lines of NDJSON in batches, each bounded in documents and in octets. A line that is no object is a fault of its own. */
import type { Readable } from 'node:stream';

export type Line = { readonly number: number; readonly document: unknown };

export type LineFault = { readonly number: number; readonly message: string };

export type Batch = { readonly lines: readonly Line[]; readonly faults: readonly LineFault[] };

/** Octets of documents after which a batch ends; a server takes 4 MiB by default. */
const batchBytesMax = 2 * 1024 * 1024;

/** Octets of one line, which the program holds at once. */
const lineBytesMax = 64 * 1024 * 1024;

const lineFeed = 0x0a;

export async function* batchesOf(input: Readable, size: number): AsyncGenerator<Batch> {
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

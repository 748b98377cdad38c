/**
 * Calls on many documents: one patch for all that a filter finds, items of a bulk request, and imports. Their code is loaded by the first one.
 * A long import is sent once: the server takes no Idempotency-Key for content that it writes while it arrives.
 */
import type { CallOptions, Send } from './send.ts';

/** What an item or a record is to the document that it names. */
type Mode = 'create' | 'replace' | 'merge' | 'upsert';

type Naming = {
  /** Default `create`. */
  readonly mode?: Mode;
  /** The members that name a document: those of an entry of `unique`. Default `id`. */
  readonly key?: string | readonly string[];
};

export type BulkOptions = CallOptions &
  Naming & { /** Default true: all are written, or none. */ readonly atomic?: boolean };

export type BulkResult = {
  readonly status: number;
  readonly id?: string;
  readonly unchanged?: true;
  readonly code?: string;
  readonly error?: string;
};

export type ImportOptions = CallOptions &
  Naming & {
    /** Default: that of the Blob. */
    readonly type?: 'text/csv' | 'text/csv; header=absent' | 'application/x-ndjson' | 'application/json';
    /** What the columns of CSV are, in place of the names in its header; null leaves one out. `type: 'text/csv; header=absent'` needs them. */
    readonly columns?: readonly (string | null)[];
    /** Counts and lists faults, and writes nothing. */
    readonly dryRun?: boolean;
    /** Default false: each record is written by itself. */
    readonly atomic?: boolean;
  };

export type ImportResult = {
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly refused: number;
  /** The first 100 faults. */
  readonly errors: readonly {
    /** Where the record begins, from 1. */
    readonly line: number;
    /** Of CSV, from 1. */
    readonly column?: number;
    /** A JSON Pointer. */
    readonly member?: string;
    readonly code: string;
    readonly message: string;
  }[];
  readonly errorsMore?: number;
};

export type ManyUpdate<F, P> = {
  readonly filter: F;
  readonly q?: string;
  readonly patch: P;
  /** Counts, and changes nothing. */
  readonly dryRun?: boolean;
};

/** Numbers of documents; `refused`: those that the caller may not change. */
export type ManyUpdated = { readonly changed: number; readonly unchanged: number; readonly refused: number };

/** The calls on many documents of one collection. @template F its filter @template N what creates a document @template P its patch */
export type ManyCalls<F, N, P> = {
  /** Applies a patch to every document that the filter finds, in one unit. */
  updateMany(update: ManyUpdate<F, P>, options?: CallOptions): Promise<ManyUpdated>;
  /** Writes many documents in one request. @returns a result for each item, in their order */
  bulk(
    items: readonly ((N | P) & { readonly id?: string })[],
    options?: BulkOptions,
  ): Promise<readonly BulkResult[]>;
  /** Imports CSV with a header, NDJSON, or a JSON array of documents. `timeout` is an hour by default. */
  import(content: Blob | Uint8Array | string, options?: ImportOptions): Promise<ImportResult>;
};

export async function updateMany(
  send: Send,
  path: string,
  body: ManyUpdate<unknown, unknown>,
  options: CallOptions = {},
): Promise<ManyUpdated> {
  return (await send('PATCH', path, { ...options, body })).body as ManyUpdated;
}

export async function bulk(
  send: Send,
  path: string,
  items: readonly unknown[],
  { mode, key, atomic, ...options }: BulkOptions = {},
): Promise<readonly BulkResult[]> {
  const body = { items, ...(mode && { mode }), ...(key && { key }), ...(atomic === false && { atomic }) };
  const answer = await send('POST', `${path}/bulk`, { ...options, body });
  return (answer.body as { readonly items: readonly BulkResult[] }).items;
}

const importTimeoutMs = 3_600_000;
/** 512 KiB. Shorter content is sent again where an answer is lost. */
const repeatedBytesMax = 524_288;

export async function importContent(
  send: Send,
  path: string,
  content: Blob | Uint8Array | string,
  { type, mode, key, atomic, dryRun, columns, ...options }: ImportOptions = {},
): Promise<ImportResult> {
  const body = content instanceof Blob ? content : new Blob([content as never]);
  const stated = type ?? body.type;
  if (stated === '') throw new TypeError('an import needs the type of its content, such as text/csv');
  const query = new URLSearchParams({
    ...(mode && { mode }),
    ...(key && { key: [key].flat().join() }),
    ...(atomic === true && { atomic: 'true' }),
    ...(dryRun === true && { dryRun: 'true' }),
    ...(columns && { columns: columns.join() }),
  });
  const isLong = body.size > repeatedBytesMax;
  const answer = await send('POST', `${path}/import?${query}`, {
    timeout: importTimeoutMs,
    ...options,
    ...{ body, headers: { 'Content-Type': stated, ...options.headers } },
    ...(isLong && { once: true, isKeyless: true }),
  });
  return answer.body as ImportResult;
}

/**
 * Writes a store into a new file that the embedded store can open: the tables with their rows, and the counters from which revisions
 * continue. It needs no journal, because the file counts only once it is closed and published; the store that opens the file creates the
 * indexes.
 */
import { once } from 'node:events';
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { type MessagePort, Worker } from 'node:worker_threads';
import { ownEmitter } from '../../observe/own-emitter.ts';
import { purgedCounter, purgedCounterName, type Raise } from '../revision.ts';
import { quoteName } from '../sql-text.ts';
import { StoreUnavailable } from '../store.ts';
import { columnNamesOf, createTableSql, type FileTable, markBackup, migrate } from './file-format.ts';

/** A table with its number in the file and the last revision that touched it. */
type CountedTable = FileTable & { readonly number: number; readonly rev: number };

/** Values in the order of `columnNamesOf`. */
type FileRow = readonly SQLInputValue[];

type FileWriter = {
  insert(table: FileTable, rows: Iterable<FileRow>): void;
  /** Completes the file; `publish` writes it to disk. */
  close(): void;
};

type FileHead = {
  /** The store-wide revision. */
  readonly rev: number;
  /** The greatest revision of the events that were purged. */
  readonly purged: number;
  /** As in file-format.ts. */
  readonly origin: string;
  readonly raises: readonly Raise[];
};

/** @param path an empty file */
export function writeFile(
  path: string,
  { rev, purged, origin, raises }: FileHead,
  tables: readonly CountedTable[],
): FileWriter {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  database.exec(
    'PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384',
  );
  migrate(database, path, ignore);
  database.exec('BEGIN');
  database.prepare('UPDATE comity_counters SET rev = ? WHERE n = 0').run(rev);
  const raise = database.prepare('INSERT INTO comity_raises (before, after, made_at) VALUES (?, ?, ?)');
  for (const { before, after, madeAt } of raises) raise.run(before, after, madeAt);
  const count = database.prepare('INSERT INTO comity_counters (n, name, rev) VALUES (?, ?, ?)');
  if (purged > 0) count.run(purgedCounter, purgedCounterName, purged);
  for (const table of tables) {
    database.exec(createTableSql(table));
    count.run(table.number, table.name, table.rev);
  }
  return {
    insert(table, rows) {
      const columns = columnNamesOf(table);
      const places = columns.map(() => '?').join(', ');
      const insert = database.prepare(
        `INSERT INTO ${quoteName(table.name)} (${columns.join(', ')}) VALUES (${places})`,
      );
      for (const row of rows) insert.run(...row);
    },
    close() {
      markBackup(database, origin);
      database.exec('COMMIT');
      database.close();
    },
  };
}

function ignore(): void {
  // The migration of a new file is not worth a log line.
}

/** The name of a file while it is written, so that an interrupted write leaves nothing under the final name. */
function partialPath(path: string): string {
  return `${path}.partial`;
}

/** Creates the partial file, empty and readable by its owner only, in place of one from an earlier attempt. */
export function beginPartial(path: string): string {
  const partial = partialPath(path);
  rmSync(partial, { force: true });
  closeSync(openSync(partial, 'wx', 0o600));
  return partial;
}

/** Changes a partial file that holds a whole store. No other process uses it, and `publish` writes it to disk. */
export function changePartial(partial: string, change: (database: DatabaseSync) => void): void {
  const database = new DatabaseSync(partial);
  database.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; BEGIN');
  change(database);
  database.exec('COMMIT');
  database.close();
}

/** Renames the partial file once it is on disk, and waits until the name is on disk too. */
export function publish(path: string): void {
  const partial = partialPath(path);
  sync(partial, 'r+');
  renameSync(partial, path);
  // Windows cannot open a folder as a file, and persists names by itself.
  if (process.platform !== 'win32') sync(dirname(path), 'r');
}

function sync(path: string, flags: string): void {
  const file = openSync(path, flags);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Called often during a copy, with pages or rows, depending on the engine. */
export type OnProgress = (done: number, total: number) => void;

export type Copy = {
  /** Resolves when the file is complete. @throws StoreUnavailable with the thread's error as its cause, if there was one */
  readonly done: Promise<void>;
  /** Stops the copy, which rejects `done`. */
  readonly stop: () => Promise<void>;
};

/**
 * Called when the partial file holds the whole store, before it gets its name. The copy is given up if it rejects, and the signal is aborted
 * if the copy is stopped meanwhile.
 */
export type WhenCopied = (partial: string, signal: AbortSignal) => Promise<void>;

export type CopyReply =
  | { readonly kind: 'progress'; readonly done: number; readonly total: number }
  | { readonly kind: 'copied' | 'done' };

/** What each task of a copying thread says besides what belongs to the engine. */
export type CopyTarget = {
  readonly to: string;
  /** True if the file gets its name by `publishWhenTold`. */
  readonly waits?: boolean;
};

/** Gives the file its name, in the thread of the copy: at once, or when the thread that started it says so. */
export async function publishWhenTold({ to, waits = false }: CopyTarget, port: MessagePort): Promise<void> {
  if (waits) {
    const told = once(port, 'message');
    port.postMessage({ kind: 'copied' } satisfies CopyReply);
    await told;
  }
  publish(to);
}

/**
 * Runs a thread that copies a store into a file. The thread renames the file once it is complete; a failed copy leaves nothing.
 * @param data `workerData` of the thread: `to` is the target, the rest belongs to the engine
 */
export function startCopy(
  thread: URL,
  data: CopyTarget,
  onProgress: OnProgress,
  whenCopied?: WhenCopied,
): Copy {
  const { to } = data;
  let cause: unknown;
  let refusal: { readonly error: unknown } | undefined;
  const stopped = new AbortController();
  const workerData = { ...data, waits: whenCopied !== undefined };
  const worker = ownEmitter(new Worker(thread, { workerData }), (error) => {
    cause = error;
  });
  const publishAfter = async (then: WhenCopied): Promise<void> => {
    try {
      await then(partialPath(to), stopped.signal);
      worker.postMessage('publish');
    } catch (error) {
      refusal = { error };
      await worker.terminate();
    }
  };
  const done = new Promise<void>((resolve, reject) => {
    let finished = false;
    worker.on('message', (reply: CopyReply) => {
      if (reply.kind === 'progress') onProgress(reply.done, reply.total);
      else if (reply.kind === 'done') finished = true;
      else if (whenCopied !== undefined) void publishAfter(whenCopied);
    });
    worker.on('exit', () => {
      if (finished) {
        resolve();
        return;
      }
      stopped.abort();
      rmSync(partialPath(to), { force: true });
      if (refusal !== undefined) {
        reject(refusal.error);
        return;
      }
      const reason = cause instanceof Error ? cause.message : 'it was stopped';
      reject(new StoreUnavailable(`cannot write ${to}: ${reason}`, { cause }));
    });
  });
  return {
    done,
    stop: async () => {
      await worker.terminate();
    },
  };
}

type StartCopy = (to: string, onProgress: OnProgress, whenCopied?: WhenCopied) => Copy;

/** The backups of a store under way. Closing the store stops them and refuses new ones. */
export class RunningBackups {
  readonly #start: StartCopy;
  readonly #stops = new Set<() => Promise<void>>();
  #closed = false;

  /** @param start starts one copy of the store */
  constructor(start: StartCopy) {
    this.#start = start;
  }

  /** Copies the store to `to`. @throws StoreUnavailable if it fails, or after `close`; what `whenCopied` throws */
  async run(to: string, onProgress: OnProgress, whenCopied?: WhenCopied): Promise<void> {
    if (this.#closed) throw new StoreUnavailable('the store is closed');
    const copy = this.#start(to, onProgress, whenCopied);
    this.#stops.add(copy.stop);
    try {
      await copy.done;
    } finally {
      this.#stops.delete(copy.stop);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const stop of this.#stops) await stop();
  }
}

/**
 * The thread of one backup. It holds a read transaction for the whole copy: without it SQLite starts the copy over
 * whenever another connection commits, and under steady writes it would never end.
 */
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { backup } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { type BackupData, type BackupReply, partialPath } from './backup.ts';
import { connect } from './connection.ts';

/** 4 MiB between two reports of progress. */
const pagesPerStep = 1024;

async function run({ from, to }: BackupData): Promise<void> {
  const partial = partialPath(to);
  rmSync(partial, { force: true });
  closeSync(openSync(partial, 'wx', 0o600));
  const database = connect(from, 'reader', { cacheKibibytes: 2048, busyTimeoutMs: 5000, mappedBytesMax: 0 });
  database.exec('BEGIN; SELECT count(*) FROM sqlite_schema');
  await backup(database, partial, {
    rate: pagesPerStep,
    progress: ({ totalPages, remainingPages }) => {
      tell({ kind: 'progress', done: totalPages - remainingPages, total: totalPages });
    },
  });
  database.exec('COMMIT');
  const total = Number(database.prepare('PRAGMA page_count').get()?.page_count);
  database.close();
  const file = openSync(partial, 'r+');
  fsyncSync(file);
  closeSync(file);
  renameSync(partial, to);
  tell({ kind: 'progress', done: total, total });
  tell({ kind: 'done' });
}

function tell(reply: BackupReply): void {
  parentPort?.postMessage(reply);
}

await run(workerData as BackupData);

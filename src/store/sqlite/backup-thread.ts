/**
 * The thread of one backup. It holds a read transaction for the whole copy: without it SQLite starts the copy over
 * whenever another connection commits, and under steady writes it would never end.
 */
import { backup, DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { writeDigests } from '../backup-file/digests.ts';
import { beginPartial, publish } from '../backup-file/publish.ts';
import type { CopyReply } from '../backup-file/start-copy.ts';
import type { BackupData } from './backup.ts';
import { connect } from './connection.ts';

/** 4 MiB between two reports of progress. */
const pagesPerStep = 1024;

async function run({ from, to }: BackupData): Promise<void> {
  const partial = beginPartial(to);
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
  addDigests(partial);
  publish(to);
  tell({ kind: 'progress', done: total, total });
  tell({ kind: 'done' });
}

/** The file is nobody's yet, and is made safe by being published. */
function addDigests(partial: string): void {
  const copy = new DatabaseSync(partial);
  copy.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; BEGIN');
  writeDigests(copy);
  copy.exec('COMMIT');
  copy.close();
}

function tell(reply: CopyReply): void {
  parentPort?.postMessage(reply);
}

await run(workerData as BackupData);

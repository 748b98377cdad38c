/** The thread of one backup. A read transaction spans the copy; without it SQLite restarts the copy at every commit. */

import { dirname } from 'node:path';
import { backup } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { writeDigests } from '../backup-file/digests.ts';
import { folderOrigin, writeOrigin } from '../backup-file/origin.ts';
import type { CopyReply } from '../backup-file/start-copy.ts';
import { beginPartial, changePartial, publish } from '../backup-file/write-file.ts';
import { connect } from './connection.ts';
import type { BackupData } from './sqlite-backup.ts';

/** 4 MiB between two progress messages. */
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
  changePartial(partial, (copy) => {
    writeOrigin(copy, folderOrigin(dirname(from)));
    writeDigests(copy);
  });
  publish(to);
  tell({ kind: 'progress', done: total, total });
  tell({ kind: 'done' });
}

function tell(reply: CopyReply): void {
  parentPort?.postMessage(reply);
}

await run(workerData as BackupData);

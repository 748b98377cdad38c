/** The thread of one restore: copies the file by pages, then checks every page of the copy. */
import { backup } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { digestFault } from '../backup-file/digests.ts';
import { openUnchanging, UnfitBackup } from '../backup-file/read-file.ts';
import type { CopyReply } from '../backup-file/start-copy.ts';
import { beginPartial, publish } from '../backup-file/write-file.ts';
import type { RestoreData } from './sqlite-restore.ts';

/** 4 MiB between two progress messages. */
const pagesPerStep = 1024;

async function run({ from, to }: RestoreData): Promise<void> {
  const partial = beginPartial(to);
  const source = openUnchanging(from);
  await backup(source, partial, {
    rate: pagesPerStep,
    progress: ({ totalPages, remainingPages }) => {
      tell({ kind: 'progress', done: totalPages - remainingPages, total: totalPages });
    },
  });
  const total = Number(source.prepare('PRAGMA page_count').get()?.page_count);
  source.close();
  check(partial, from);
  publish(to);
  tell({ kind: 'progress', done: total, total });
  tell({ kind: 'done' });
}

/** Finds lost and changed pages. Does not compare indexes with rows, which takes as long as rebuilding them. */
function check(copy: string, from: string): void {
  const database = openUnchanging(copy);
  const fault = database.prepare('PRAGMA quick_check(1)').get()?.quick_check;
  const changed = fault === 'ok' ? digestFault(database) : undefined;
  database.close();
  if (fault !== 'ok') throw new UnfitBackup(`${from} is damaged: ${String(fault)}`);
  if (changed !== undefined) throw new UnfitBackup(`${from} is damaged: ${changed}`);
}

function tell(reply: CopyReply): void {
  parentPort?.postMessage(reply);
}

await run(workerData as RestoreData);

/** The thread of one restore: copies the file by pages, then checks every page of the copy. */
import { backup, type DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { digestFault } from '../backup-file/digests.ts';
import { columnNamesOf, createTableSql } from '../backup-file/layout.ts';
import type { SetRow } from '../backup-file/origin.ts';
import { openUnchanging, UnfitBackup } from '../backup-file/read-file.ts';
import type { CopyReply } from '../backup-file/start-copy.ts';
import { beginPartial, changePartial, publish } from '../backup-file/write-file.ts';
import { quoteName } from '../quote-name.ts';
import type { RestoreData } from './sqlite-restore.ts';

/** 4 MiB between two progress messages. */
const pagesPerStep = 1024;

async function run({ from, to, set }: RestoreData): Promise<void> {
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
  if (set !== undefined) changePartial(partial, (copy) => setRow(copy, set));
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

function setRow(copy: DatabaseSync, { table, id, doc, at }: SetRow): void {
  const rev = Number(copy.prepare('SELECT rev FROM comity_counters WHERE n = 0').get()?.rev);
  if (copy.prepare('SELECT 1 FROM comity_counters WHERE name = ?').get(table) === undefined) {
    copy.exec(createTableSql({ name: table, searched: false }));
    copy
      .prepare('INSERT INTO comity_counters (n, name, rev) SELECT max(n) + 1, ?, ? FROM comity_counters')
      .run(table, rev);
  }
  copy.prepare(`DELETE FROM ${quoteName(table)} WHERE id = ?`).run(id);
  if (doc !== undefined) {
    const columns = columnNamesOf({ name: table, searched: false });
    const places = columns.map(() => '?').join(', ');
    copy
      .prepare(`INSERT INTO ${quoteName(table)} (${columns.join(', ')}) VALUES (${places})`)
      .run(...[id, rev, null, at, at, null, doc]);
  }
}

function tell(reply: CopyReply): void {
  parentPort?.postMessage(reply);
}

await run(workerData as RestoreData);

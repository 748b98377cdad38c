/** The thread of one backup or one restore: copies the file by pages, and publishes the copy once it is complete. */
import { dirname } from 'node:path';
import { backup, type DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import {
  columnNamesOf,
  createTableSql,
  digestFault,
  folderOrigin,
  markBackup,
  type SetRow,
} from '../backup-file/file-format.ts';
import { openUnchanging, UnfitBackup } from '../backup-file/read-file.ts';
import { beginPartial, type CopyReply, changePartial, publishWhenTold } from '../backup-file/write-file.ts';
import { quoteName } from '../sql-text.ts';
import { connect } from './connection.ts';
import type { CopyTask } from './sqlite-backup.ts';

/** 4 MiB between two progress messages. */
const pagesPerStep = 1024;

async function run(task: CopyTask): Promise<void> {
  const { from, to } = task;
  const partial = beginPartial(to);
  const source = task.makes === 'backup' ? openSnapshot(from) : openUnchanging(from);
  await backup(source, partial, {
    rate: pagesPerStep,
    progress: ({ totalPages, remainingPages }) => {
      reply({ kind: 'progress', done: totalPages - remainingPages, total: totalPages });
    },
  });
  const total = Number(source.prepare('PRAGMA page_count').get()?.page_count);
  source.close();
  if (task.makes === 'backup') {
    changePartial(partial, (copy) => markBackup(copy, folderOrigin(dirname(from))));
  } else {
    check(partial, from);
    const { set } = task;
    if (set !== undefined) changePartial(partial, (copy) => setRow(copy, set));
  }
  if (parentPort === null) throw new Error('this is a thread');
  await publishWhenTold(task, parentPort);
  reply({ kind: 'progress', done: total, total });
  reply({ kind: 'done' });
}

/** A read transaction spans the copy; without it SQLite restarts the copy at every commit. */
function openSnapshot(path: string): DatabaseSync {
  const database = connect(path, 'reader', { cacheKibibytes: 2048, busyTimeoutMs: 5000, mappedBytesMax: 0 });
  database.exec('BEGIN; SELECT count(*) FROM sqlite_schema');
  return database;
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

function reply(message: CopyReply): void {
  parentPort?.postMessage(message);
}

await run(workerData as CopyTask);

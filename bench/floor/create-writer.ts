/** The writer thread of `create.ts`: each message is a batch (id, doc, id, doc, ...) and becomes one transaction. */
import { parentPort, workerData } from 'node:worker_threads';
import { openFloorStore } from './store.ts';

const database = openFloorStore(String(workerData));
const begin = database.prepare('BEGIN IMMEDIATE');
const commit = database.prepare('COMMIT');
const insertRow = database.prepare('INSERT INTO t VALUES (?, ?, ?, NULL, ?, ?, NULL)');
const insertEvent = database.prepare("INSERT INTO events VALUES (?, ?, 'products.created', ?, ?)");
let rev = Number(database.prepare('SELECT coalesce(max(rev), 0) AS rev FROM t').get()?.rev ?? 0);

parentPort?.on('message', (batch: readonly string[]) => {
  const firstRev = rev + 1;
  const atMs = Date.now();
  begin.run();
  for (let place = 0; place < batch.length; place += 2) {
    const id = batch[place] ?? '';
    const doc = batch[place + 1] ?? '';
    rev += 1;
    insertRow.run(id, rev, doc, atMs, atMs);
    insertEvent.run(rev, `evt_${id}`, doc, atMs);
  }
  commit.run();
  parentPort?.postMessage(firstRev);
});

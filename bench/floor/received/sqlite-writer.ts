/** The writer thread of `sqlite.ts`: each message is a batch (key, body, key, body, ...) and becomes one transaction. */
import { parentPort, workerData } from 'node:worker_threads';
import { openFloorStore } from '../store.ts';

const database = openFloorStore(String(workerData));
const begin = database.prepare('BEGIN IMMEDIATE');
const commit = database.prepare('COMMIT');
const insert = database.prepare('INSERT INTO received VALUES (?, ?, ?) ON CONFLICT DO NOTHING');

parentPort?.on('message', (batch: readonly string[]) => {
  const atMs = Date.now();
  begin.run();
  for (let place = 0; place < batch.length; place += 2) {
    insert.run(batch[place] ?? '', batch[place + 1] ?? '', atMs);
  }
  commit.run();
  parentPort?.postMessage(batch.length);
});

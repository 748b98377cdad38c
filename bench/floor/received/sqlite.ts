/**
 * The floor of receiving over SQLite: a writer thread inserts each batch in one transaction (WAL, `synchronous=FULL`).
 *
 * Usage: node bench/floor/received/sqlite.ts DATABASE
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { receive } from './receive.ts';

const writer = new Worker(new URL('./sqlite-writer.ts', import.meta.url), { workerData: process.argv[2] });
await once(writer, 'online');
let done: () => void = () => undefined;
writer.on('message', () => done());
receive((batch) => {
  writer.postMessage(batch);
  return new Promise<void>((resolve) => {
    done = resolve;
  });
});

/** The entry point of a worker's thread. */
import { workerData } from 'node:worker_threads';
import { runWorker } from './worker.ts';
import type { WorkerData } from './worker-messages.ts';

await runWorker(workerData as WorkerData);

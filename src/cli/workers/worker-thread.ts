/** The entry point of a worker's thread. */
import { workerData } from 'node:worker_threads';
import { useTypeboxBundle } from '../../typebox-bundle.ts';
import type { WorkerData } from './worker-messages.ts';

useTypeboxBundle();
// Imported last, so that it applies to what this imports.
const { runWorker } = await import('./worker.ts');
await runWorker(workerData as WorkerData);

/**
 * The hashing thread: runs argon2id for one message after the other, at a lower priority than the threads that serve requests
 * (docs/decisions/0021 has the figures).
 */
import { argon2Sync } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { lowerOwnPriority } from '../../store/worker-file.ts';
import type { HashJob, HashReply } from './hasher.ts';

lowerOwnPriority();
parentPort?.on('message', (job: HashJob | 'close') => {
  if (job === 'close') parentPort?.close();
  else parentPort?.postMessage(run(job));
});

function run(job: HashJob): HashReply {
  try {
    const tag = argon2Sync('argon2id', {
      message: job.message,
      nonce: job.salt,
      memory: job.memoryKibibytes,
      passes: job.passes,
      parallelism: job.lanes,
      tagLength: job.tagOctets,
    });
    return { tag };
  } catch (error) {
    return { failed: error instanceof Error ? error.message : 'argon2id failed' };
  }
}

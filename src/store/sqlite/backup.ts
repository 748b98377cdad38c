/**
 * Copies the database while it serves: a thread of its own copies pages from one snapshot into a file beside the target, which is
 * renamed when it is whole and on disk. A failed backup leaves nothing under the target's name.
 */
import { rmSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { unavailable } from './failure.ts';
import { workerFile } from './worker-file.ts';

export type BackupData = { readonly from: string; readonly to: string };

export type BackupReply =
  | { readonly kind: 'progress'; readonly done: number; readonly total: number }
  | { readonly kind: 'done' };

/** Starts the copy; `stop` ends it early, which rejects `done`. */
export function startBackup(
  from: string,
  to: string,
  onProgress: (done: number, total: number) => void,
): { readonly done: Promise<void>; readonly stop: () => Promise<void> } {
  const data: BackupData = { from, to };
  const worker = new Worker(workerFile('./backup-thread', import.meta.url), { workerData: data });
  const done = new Promise<void>((resolve, reject) => {
    let finished = false;
    let cause: unknown;
    worker.on('message', (reply: BackupReply) => {
      if (reply.kind === 'progress') onProgress(reply.done, reply.total);
      else finished = true;
    });
    worker.on('error', (error) => {
      cause = error;
    });
    worker.on('exit', () => {
      if (finished) {
        resolve();
        return;
      }
      rmSync(partialPath(to), { force: true });
      const reason = cause instanceof Error ? cause.message : 'it was stopped';
      reject(unavailable(`the backup to ${to} failed: ${reason}`, cause));
    });
  });
  return {
    done,
    stop: async () => {
      await worker.terminate();
    },
  };
}

export function partialPath(to: string): string {
  return `${to}.partial`;
}

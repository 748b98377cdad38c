/**
 * Runs a thread that copies a store into one file. The thread writes beside the target and gives it the target's name when it is whole
 * and on disk (publish.ts); a copy that failed or was stopped leaves nothing.
 */
import { rmSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { ownEmitter } from '../../observe/own-emitter.ts';
import { StoreUnavailable } from '../store.ts';
import { partialPath } from './publish.ts';

/** Told often while a copy goes on; what is counted is the engine's: pages or rows. */
export type OnProgress = (done: number, total: number) => void;

export type Copy = {
  /** Resolves when the file is there. @throws StoreUnavailable, whose cause is the thread's error if there was one */
  readonly done: Promise<void>;
  /** Ends the copy early, which rejects `done`. */
  readonly stop: () => Promise<void>;
};

/** What the thread says. */
export type CopyReply =
  | { readonly kind: 'progress'; readonly done: number; readonly total: number }
  | { readonly kind: 'done' };

/** @param data what the thread is given: `to` is the target, the rest is the engine's */
export function startCopy(thread: URL, data: { readonly to: string }, onProgress: OnProgress): Copy {
  const { to } = data;
  let cause: unknown;
  const worker = ownEmitter(new Worker(thread, { workerData: data }), (error) => {
    cause = error;
  });
  const done = new Promise<void>((resolve, reject) => {
    let finished = false;
    worker.on('message', (reply: CopyReply) => {
      if (reply.kind === 'progress') onProgress(reply.done, reply.total);
      else finished = true;
    });
    worker.on('exit', () => {
      if (finished) {
        resolve();
        return;
      }
      rmSync(partialPath(to), { force: true });
      const reason = cause instanceof Error ? cause.message : 'it was stopped';
      reject(new StoreUnavailable(`cannot write ${to}: ${reason}`, { retryAfterSeconds: 1, cause }));
    });
  });
  return {
    done,
    stop: async () => {
      await worker.terminate();
    },
  };
}

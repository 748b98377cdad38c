/** Runs a thread that copies a store into a file. The thread renames the file once it is complete; a failed copy leaves nothing. */
import { rmSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { ownEmitter } from '../../observe/own-emitter.ts';
import { StoreUnavailable } from '../store.ts';
import { partialPath } from './write-file.ts';

/** Called often during a copy, with pages or rows, depending on the engine. */
export type OnProgress = (done: number, total: number) => void;

export type Copy = {
  /** Resolves when the file is complete. @throws StoreUnavailable with the thread's error as its cause, if there was one */
  readonly done: Promise<void>;
  /** Stops the copy, which rejects `done`. */
  readonly stop: () => Promise<void>;
};

export type CopyReply =
  | { readonly kind: 'progress'; readonly done: number; readonly total: number }
  | { readonly kind: 'done' };

/** @param data `workerData` of the thread: `to` is the target, the rest belongs to the engine */
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
      reject(new StoreUnavailable(`cannot write ${to}: ${reason}`, { cause }));
    });
  });
  return {
    done,
    stop: async () => {
      await worker.terminate();
    },
  };
}

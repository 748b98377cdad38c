/** The program of a content thread: runs one job at a time, with validators compiled from the same schemas. */
import { parentPort, workerData } from 'node:worker_threads';
import { contentShape } from '../../kernel/content/content-shape.ts';
import { compileValidator } from '../../kernel/content/validator.ts';
import { lowerOwnPriority } from '../../store/worker-file.ts';
import type { ThreadData, ThreadReply, ThreadRequest } from './content-threads.ts';
import { carryOut, type Workshop } from './job.ts';

function run({ collections, ...limits }: ThreadData): void {
  const port = parentPort;
  if (port === null) throw new Error('content-thread.ts runs only in a worker thread');
  const workshops = new Map<string, Workshop>();

  function workshopOf(name: string): Workshop {
    const known = workshops.get(name);
    if (known !== undefined) return known;
    const collection = collections.get(name);
    if (collection === undefined) throw new Error(`no collection is named ${name}`);
    const validator = compileValidator(collection, limits.validationErrorsMax);
    const workshop = { collection, validator, shape: contentShape(collection), ...limits };
    workshops.set(name, workshop);
    return workshop;
  }

  port.on('message', ({ collection, job }: ThreadRequest) => {
    const work = async () => carryOut(workshopOf(collection), job);
    work().then(
      (outcome) => port.postMessage({ outcome } satisfies ThreadReply),
      (error: unknown) => port.postMessage({ failure: String(error) } satisfies ThreadReply),
    );
  });
}

lowerOwnPriority();
run(workerData as ThreadData);

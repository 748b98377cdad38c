/** The program of a migration thread: imports the configuration again, because functions cannot be sent to a thread, and takes batches. */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { resolveConfiguration } from '../config/configuration.ts';
import type { ConfigurationDeclaration } from '../config/define.ts';
import { lowerOwnPriority } from '../store/worker-file.ts';
import {
  InlineWork,
  type Looked,
  type Migrated,
  type ThreadData,
  type ThreadReply,
  type ThreadRequest,
} from './document-work.ts';

async function run({ module, progress, isBeside, ...limits }: ThreadData): Promise<void> {
  const port = parentPort;
  if (port === null) throw new Error('migration-thread.ts runs only in a worker thread');
  if (isBeside) lowerOwnPriority();
  const path = relative(process.cwd(), fileURLToPath(module));
  const loading = (async () => {
    const { default: declaration } = (await import(module)) as { default: ConfigurationDeclaration };
    const configuration = resolveConfiguration(declaration, undefined, new URL(module));
    return new InlineWork(configuration, limits, path);
  })();
  loading.catch(() => undefined);
  const onDocument = (index: number): void => void Atomics.store(progress, 0, index);
  port.on('message', ({ kind, batch }: ThreadRequest) => {
    const reply = (message: ThreadReply): void => port.postMessage(message);
    loading
      .then(
        async (work): Promise<readonly Migrated[] | readonly Looked[]> =>
          kind === 'migrate' ? work.migrate(batch, onDocument) : work.look(batch, onDocument),
      )
      .then(
        (results) => reply({ kind: 'done', results }),
        (error: unknown) => reply({ kind: 'failed', message: messageOf(error) }),
      );
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

await run(workerData as ThreadData);

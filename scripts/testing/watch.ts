/**
 * Runs, after each change of a file, the tests of the default tier that can reach it (reach.ts), or those of them below the paths given.
 * A change while tests run ends that run, and the next has what both can reach. Ctrl-C ends it.
 *
 * Usage: npm run test:watch [-- PATH ...]
 */
import { existsSync, watch } from 'node:fs';
import { join, resolve } from 'node:path';
import { offerServer } from '../../test/harness/postgres-server/run-server.ts';
import { codeFolders, repositoryRoot } from '../source-tree.ts';
import { printFile, printTotals } from './print.ts';
import { filesThatReach } from './reach.ts';
import { type FileResult, runFiles } from './run-files.ts';
import { forgetConfiguration, processes, selectFiles } from './select-files.ts';

/** An editor saves in several steps. */
const quietMs = 200;
const timeoutMs = 180_000;

const paths = process.argv.slice(2);
const changed = new Set<string>();
let run: { readonly abort: AbortController; readonly ended: Promise<void> } | undefined;
let quiet: NodeJS.Timeout | undefined;

forgetConfiguration();
const server = await offerServer();
process.once('SIGINT', () => void end());
for (const folder of codeFolders) {
  if (!existsSync(join(repositoryRoot, folder))) continue;
  watch(join(repositoryRoot, folder), { recursive: true }, (_event, file) => {
    if (file !== null) changed.add(`${folder}/${file.replaceAll('\\', '/')}`);
    clearTimeout(quiet);
    quiet = setTimeout(() => void start(), quietMs);
  });
}
console.log('Waiting for a change; Ctrl-C ends.');

async function start(): Promise<void> {
  run?.abort.abort();
  await run?.ended;
  const reached = filesThatReach(repositoryRoot, changed);
  const files = selectFiles(paths, { full: false, soak: false }).filter((file) => reached.has(file));
  if (files.length === 0) {
    console.log(`No test file imports ${[...changed].join(', ')}`);
    return changed.clear();
  }
  const abort = new AbortController();
  run = { abort, ended: runOnce(files, abort.signal) };
}

async function runOnce(files: readonly string[], signal: AbortSignal): Promise<void> {
  const startedAt = performance.now();
  const results: FileResult[] = [];
  await runFiles(
    files.map((file) => resolve(repositoryRoot, file)),
    {
      ...{ processes, timeoutMs, signal, isAlone: false },
      onFile: (result) => {
        if (signal.aborted) return;
        results.push(result);
        printFile(result, false);
      },
    },
  );
  if (signal.aborted) return;
  // What failed is run again with the next change, whatever that can reach.
  if (printTotals(results, performance.now() - startedAt)) changed.clear();
}

async function end(): Promise<void> {
  run?.abort.abort();
  await run?.ended;
  await server.close();
  process.exit(0);
}

/**
 * Runs the tests: those of the default tier, every *.test.ts below test/ but test/full and test/soak; with --full those of test/full too;
 * or those below the paths given. Prints a line a file, failures in full, the counts, and last "N passed, N failed" over
 * everything that ran. A test, and a whole file, has a bound in time; a file that leaves something open fails.
 *
 * Usage: npm test [-- [--full] [--verbose] [--times] [--name PATTERN] [--minutes N] [PATH ...]]
 *   --verbose   a line for each test      --times     the files by processor time
 *   --name      only tests whose title matches        --minutes   the bound, 3 by default
 */
import { relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { offerServer } from '../test/harness/postgres-server/run-server.ts';
import { listFiles, repositoryRoot } from './source-tree.ts';
import { printFile, printProcessorTimes, printTotals } from './testing/print.ts';
import { type FileResult, runFiles } from './testing/run-files.ts';

/** One more than the reference machine has cores: some wait for servers, databases and browsers. Four take as long and fail in time. */
const processes = 3;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    full: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    times: { type: 'boolean', default: false },
    name: { type: 'string' },
    minutes: { type: 'string', default: '3' },
  },
});

const files = selectFiles(positionals);
if (files.length === 0) {
  console.error(`No test file is below ${positionals.join(' ')}`);
  process.exit(1);
}
forgetConfiguration();
// Without compiled code kept, types are stripped again in each process that the tests start.
process.env.NODE_COMPILE_CACHE ??= resolve(repositoryRoot, 'node_modules/.cache/comity');
const server = await offerServer();
const isGood = await runAll();
await server.close();
// Set, not called: what is still on its way to a pipe must get there.
process.exitCode = isGood ? 0 : 1;

async function runAll(): Promise<boolean> {
  const startedAt = performance.now();
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
  const { name } = options;
  const results: FileResult[] = [];
  await runFiles(
    files.map((file) => resolve(repositoryRoot, file)),
    {
      processes,
      timeoutMs: Number(options.minutes) * 60_000,
      // Node knows the titles to run from the start of a process alone.
      isAlone: (file) =>
        name !== undefined || isBelow(pathOf(file), 'test/full') || isBelow(pathOf(file), 'test/soak'),
      ...(name === undefined ? {} : { name }),
      signal: interrupted.signal,
      onFile: (result) => {
        // Of many files few hold a title that matches.
        if (name !== undefined && result.tests.length === 0 && result.problem === 'it holds no test') return;
        results.push(result);
        printFile(result, options.verbose);
      },
    },
  );
  if (options.times) printProcessorTimes(results);
  return printTotals(results, performance.now() - startedAt) && !interrupted.signal.aborted;
}

/** Repository checks come first: they are quick, and what they find often explains the rest. */
function selectFiles(paths: readonly string[]): readonly string[] {
  const wanted = paths.map(pathOf);
  const isWanted = (file: string): boolean => {
    if (wanted.length > 0) return wanted.some((path) => isBelow(file, path));
    return !isBelow(file, 'test/soak') && (options.full || !isBelow(file, 'test/full'));
  };
  const found = listFiles(repositoryRoot, 'test').filter(
    (file) => file.endsWith('.test.ts') && isWanted(file),
  );
  const isCheck = (file: string): boolean => isBelow(file, 'test/repository');
  return [...found.filter(isCheck), ...found.filter((file) => !isCheck(file))];
}

function pathOf(path: string): string {
  return relative(repositoryRoot, resolve(path)).replaceAll('\\', '/');
}

function isBelow(file: string, folder: string): boolean {
  return file === folder || file.startsWith(`${folder}/`);
}

/** A test starts from the defaults, whatever the shell that it runs in has set for its own server. */
function forgetConfiguration(): void {
  for (const name of Object.keys(process.env)) {
    if (name.startsWith('COMITY_') && !/^COMITY_(FUZZ|SOAK|TEST)(_|$)/.test(name)) delete process.env[name];
  }
}

/**
 * Runs the tests: those of the default tier, every *.test.ts below test/ but test/full and test/soak; with --full those of test/full too,
 * with --soak those of test/soak alone; or those below the paths given. Prints a line a file, failures in full, the counts, and last "N passed, N failed" over
 * everything that ran. A test, and a whole file, has a bound in time; a file that leaves something open fails.
 *
 * Usage: npm test [-- [--full | --soak] [--verbose] [--times] [--name PATTERN] [--minutes N] [PATH ...]]
 *   --verbose   a line for each test      --times     the files by processor time
 *   --name      only tests whose title matches        --minutes   the bound, 10 by default
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { offerServer } from '../test/harness/postgres-server/run-server.ts';
import { repositoryRoot } from './source-tree.ts';
import { useMemoryForFiles } from './testing/memory-folder.ts';
import { printFile, printProcessorTimes, printTotals } from './testing/print.ts';
import { type FileResult, runFiles } from './testing/run-files.ts';
import { forgetConfiguration, isAlone, isMeasured, processes, selectFiles } from './testing/select-files.ts';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    full: { type: 'boolean', default: false },
    soak: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    times: { type: 'boolean', default: false },
    name: { type: 'string' },
    minutes: { type: 'string' },
  },
});

/** A test waits for a turn of a busy machine: beside twelve busy loops on two cores the check of types took more than three minutes. */
const minutesMax = 10;
const files = selectFiles(positionals, options);
if (files.length === 0) {
  console.error(`There is no test file in ${positionals.join(' ')}`);
  process.exit(1);
}
forgetConfiguration();
// The tiers differ in their files, in how long loops of kills and of races run (test/harness/rounds.ts), and in stores (engine-names.ts).
if (options.full) process.env.COMITY_TEST_TIER = 'full';
else if (positionals.length === 0) process.env.COMITY_TEST_TIER = 'default';
const server = await offerServer();
const removeFiles = process.env.COMITY_TEST_TIER === 'default' ? useMemoryForFiles() : () => undefined;
const isGood = await runAll();
await server.close();
removeFiles();
// Set, not called: what is still on its way to a pipe must get there.
process.exitCode = isGood ? 0 : 1;

async function runAll(): Promise<boolean> {
  const startedAt = performance.now();
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
  const { name } = options;
  const results: FileResult[] = [];
  const running = {
    timeoutMs: Number(options.minutes ?? minutesMax) * 60_000,
    ...(name === undefined ? {} : { name }),
    signal: interrupted.signal,
    onFile: (result: FileResult) => {
      // Of many files few hold a title that matches.
      if (name !== undefined && result.tests.length === 0 && result.problem === 'the file has no tests')
        return;
      results.push(result);
      printFile(result, options.verbose);
    },
  };
  const paths = files.map((file) => resolve(repositoryRoot, file));
  const unmeasured = paths.filter((file) => !isMeasured(file));
  const [alone, shared] = [unmeasured.filter(isAlone), unmeasured.filter((file) => !isAlone(file))];
  // Node knows the titles to run from the start of a process alone.
  await runFiles(shared, { ...running, isAlone: name !== undefined, processes });
  await runFiles(alone, { ...running, isAlone: true, processes });
  await runFiles(paths.filter(isMeasured), { ...running, isAlone: true, processes: 1 });
  if (options.times) printProcessorTimes(results);
  return printTotals(results, performance.now() - startedAt) && !interrupted.signal.aborted;
}

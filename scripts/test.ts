/**
 * Runs the tests: every *.test.ts below test/ but test/soak, or those below the paths given. Prints a line a file,
 * failures in full, Node's own closing counts, and last "N passed, N failed" over everything that ran.
 * A test, and a whole file, has a bound in time; a file that does not end by itself fails.
 *
 * Usage: npm test [-- [--verbose] [--name PATTERN] [--minutes N] [PATH ...]]
 *   --verbose   a line for each test   --name   only tests whose title matches   --minutes   the bound, 3 by default
 */
import { relative, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { run } from 'node:test';
import type { TestEvent } from 'node:test/reporters';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { offerServer } from '../test/postgres/run-server.ts';
import { listFiles, repositoryRoot } from './source-tree.ts';

/** One more than the reference machine has cores: some wait for servers, databases and browsers. Four take as long and fail in time. */
const filesAtOnce = 3;

/** What a passing test sends, of which only the count is shown. */
const quietEvents: ReadonlySet<string> = new Set([
  'test:complete',
  'test:dequeue',
  'test:enqueue',
  'test:pass',
  'test:plan',
  'test:start',
]);

/** What a file may take beyond its slowest test before it is ended. */
const fileGraceMs = 10_000;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    verbose: { type: 'boolean', default: false },
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
// Every test file is a process: without compiled code kept, types are stripped some hundred thousand times, a quarter of the work.
process.env.NODE_COMPILE_CACHE ??= resolve(repositoryRoot, 'node_modules/.cache/comity');
const server = await offerServer();
await runFiles(files, Number(options.minutes) * 60_000);
await server.close();

/** Repository checks come first: they are quick, and what they find often explains the rest. */
function selectFiles(paths: readonly string[]): readonly string[] {
  const wanted = paths.map((path) => relative(repositoryRoot, resolve(path)).replaceAll('\\', '/'));
  const isBelow = (file: string, folder: string) => file === folder || file.startsWith(`${folder}/`);
  const isWanted = (file: string) =>
    wanted.length === 0 ? !isBelow(file, 'test/soak') : wanted.some((path) => isBelow(file, path));
  const found = listFiles(repositoryRoot, 'test').filter(
    (file) => file.endsWith('.test.ts') && isWanted(file),
  );
  const isCheck = (file: string) => isBelow(file, 'test/repository');
  return [...found.filter(isCheck), ...found.filter((file) => !isCheck(file))];
}

/** A test starts from the defaults, whatever the shell that it runs in has set for its own server. */
function forgetConfiguration(): void {
  for (const name of Object.keys(process.env)) {
    if (name.startsWith('COMITY_') && !/^COMITY_(FUZZ|SOAK|TEST)(_|$)/.test(name)) delete process.env[name];
  }
}

async function runFiles(files: readonly string[], timeoutMs: number): Promise<void> {
  process.env.COMITY_TEST_FILE_MS = String(timeoutMs + fileGraceMs);
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
  const events = run({
    cwd: repositoryRoot,
    files: files.map((file) => resolve(repositoryRoot, file)),
    concurrency: filesAtOnce,
    timeout: timeoutMs,
    signal: interrupted.signal,
    execArgv: ['--import', new URL('./before-test-file.mjs', import.meta.url).href],
    ...(options.name === undefined ? {} : { testNamePatterns: [new RegExp(options.name)] }),
  });
  let passed = 0;
  let failed = 0;
  let empty = 0;
  events.on('test:pass', ({ name, file }) => {
    // Node counts a file without a test as a test that passed; it is one that cannot fail.
    if (name === file && options.name === undefined) empty += 1;
  });
  events.on('test:summary', ({ file, counts }) => {
    if (file !== undefined) return;
    passed = counts.passed - empty;
    failed = counts.tests - counts.passed - counts.skipped - counts.todo + empty;
  });
  const shown = options.verbose ? events : summariseFiles(events);
  await pipeline(Readable.from(shown), new spec(), process.stdout, { end: false });
  console.log(`\n${passed} passed, ${failed} failed`);
  // Set, not called: what is still on its way to a pipe must get there.
  process.exitCode = passed === 0 || failed > 0 ? 1 : 0;
}

/** Lets failures through as they are, and puts one line in the place of all that passed in a file. */
async function* summariseFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  for await (const event of events) {
    if (event.type === 'test:summary' && event.data.file !== undefined) {
      const { file, counts, duration_ms, success } = event.data;
      const skipped = counts.skipped === 0 ? '' : `, ${counts.skipped} skipped`;
      const name = relative(repositoryRoot, file);
      const message = `${success ? '✔' : '✖'} ${name} (${counts.tests} tests${skipped}, ${Math.round(duration_ms)} ms)\n`;
      yield { type: 'test:stdout', data: { file, message } } as TestEvent;
    } else if (event.type === 'test:pass' && event.data.name === event.data.file) {
      const { file } = event.data;
      yield {
        type: 'test:stdout',
        data: { file, message: `✖ ${relative(repositoryRoot, file)} holds no test\n` },
      } as TestEvent;
    } else if (!quietEvents.has(event.type)) yield event;
  }
}

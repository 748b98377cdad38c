/**
 * Runs test files in a few processes. They share a process (shard.ts), which asks for its next file when one is over, or have one
 * each. A file in which no test ends within a bound in time is ended, and fails.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Assignment, Ended, Failure, Report } from './protocol.ts';

export type RunOptions = {
  /** Processes at a time. */
  readonly processes: number;
  /** How long a file may take from the end of one of its tests to that of the next, in ms. */
  readonly timeoutMs: number;
  /** Only tests whose title matches this regular expression. */
  readonly name?: string;
  /** Whether each file gets a process of its own. */
  readonly isAlone: boolean;
  /** Ends the run: files under way fail, others are not begun. */
  readonly signal: AbortSignal;
  readonly onFile: (result: FileResult) => void;
};

export type FileResult = {
  readonly file: string;
  readonly tests: readonly Ended[];
  readonly remarks: readonly string[];
  /** What went wrong outside of the tests: the file does not load, leaves something open, or its process ended. */
  readonly problem: string | undefined;
  /** What it has begun and not ended, by Node's names of resources. */
  readonly leftOpen: readonly string[];
  readonly durationMs: number;
  readonly processorMs: number;
};

/**
 * Node bounds a file and each of its tests by as many times the bound, and then names them. On a machine with fourteen other
 * busy programs the contract suite took a seventh of a quiet machine's speed, and 117 tests failed that no longer had the time to run.
 */
const wholeFile = 4;
/** For what ends just within the bound. */
const graceMs = 10_000;

/** In MiB, for a process of many files: the garbage of one server after the other took a tenth more processor time with V8's own 16. */
const youngGeneration = '--max-semi-space-size=64';

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Resolves when all files have ended. */
export async function runFiles(files: readonly string[], options: RunOptions): Promise<void> {
  const left = spread(files, options.processes);
  const next = (): string | undefined => (options.signal.aborted ? undefined : left.shift());
  const work = async (): Promise<void> => {
    while (left.length > 0 && !options.signal.aborted) {
      if (!options.isAlone) await runShard(next, options);
      else for (let file = next(); file !== undefined; file = next()) await runAlone(file, options);
    }
  };
  await Promise.all(Array.from({ length: Math.min(options.processes, files.length) }, work));
}

/**
 * In an order in which files that run beside each other are of distant folders: neighbours often wait for the same thing, such as a
 * mail server or a timer of retries, and then no core works.
 */
function spread(files: readonly string[], ways: number): string[] {
  const rows = Math.ceil(files.length / ways);
  return Array.from({ length: rows }, (_, row) => files.filter((_file, at) => at % rows === row)).flat();
}

/** One process for many files, until there is none left or one of them has broken it. */
async function runShard(next: () => string | undefined, options: RunOptions): Promise<void> {
  const child = start(here('shard.ts'), [youngGeneration], options);
  let watch: FileWatch | undefined;
  let file: string | undefined;
  let isReady = false;
  let isSpoilt = false;
  child.on('message', (report: Report) => {
    if (isSpoilt) return;
    // An error may come when its file is over already.
    if (report.kind === 'uncaught' && watch === undefined && file !== undefined)
      return options.onFile(watchFile(file, child, options).result(report.text));
    if (report.kind === 'ready') isReady = true;
    else watch?.take(report);
    // It may be ready for the next file before its reporter has reported the last tests.
    if (watch?.isOver() === true) {
      const result = watch.result();
      watch = undefined;
      options.onFile(result);
      isSpoilt = leavesSomething(result);
      if (isSpoilt) return void child.kill('SIGKILL');
    }
    if (!isReady || watch !== undefined) return;
    isReady = false;
    const following = next();
    file = following ?? file;
    if (following !== undefined) watch = watchFile(following, child, options);
    child.send({ file: following ?? null } satisfies Assignment);
  });
  const cause = await ended(child);
  if (watch !== undefined) options.onFile((watch as FileWatch).result(cause));
}

/** What one file leaves behind, such as a test that was given up and still runs, is not for others to have. */
function leavesSomething({ problem, tests, leftOpen }: FileResult): boolean {
  const isGivenUp = tests.some(({ failure }) => failure !== undefined && isTimeout(failure));
  return problem !== undefined || leftOpen.length > 0 || isGivenUp;
}

async function runAlone(file: string, options: RunOptions): Promise<void> {
  const only = options.name === undefined ? [] : [`--test-name-pattern=${options.name}`];
  const preload = `--import=${new URL('preload.ts', import.meta.url).href}`;
  const child = start(file, [preload, ...only], options);
  const watch = watchFile(file, child, options);
  child.on('message', (report: Report) => watch.take(report));
  const cause = await ended(child);
  options.onFile(watch.result(watch.hasEnded() ? undefined : cause));
}

function start(module: string, nodeOptions: readonly string[], options: RunOptions): ChildProcess {
  const child = fork(module, {
    execArgv: [
      // Configurations import `comity`, which is then the sources that the tests import, not the bundle.
      '--conditions=comity-source',
      `--test-reporter=${here('reporter.ts')}`,
      '--test-reporter-destination=stdout',
      ...nodeOptions,
    ],
    env: { ...process.env, COMITY_TEST_FILE_MS: String(wholeFile * options.timeoutMs) },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const end = (): void => void child.kill('SIGKILL');
  options.signal.addEventListener('abort', end);
  child.once('close', () => options.signal.removeEventListener('abort', end));
  return child;
}

/** Resolves with why the process ended. */
function ended(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(`the process did not start: ${error.message}`));
    child.once('close', (code, signal) => resolve(`the process ended with ${signal ?? code}`));
  });
}

type FileWatch = {
  take(report: Report): void;
  /** True if all is known: of the tests by their reporter, and of the file by the process. */
  isOver(): boolean;
  hasEnded(): boolean;
  result(cause?: string): FileResult;
};

function watchFile(file: string, child: ChildProcess, { timeoutMs }: RunOptions): FileWatch {
  const startedAt = performance.now();
  const tests: Ended[] = [];
  const remarks: string[] = [];
  let problem: string | undefined;
  let uncaught: string | undefined;
  let suiteEnded = false;
  let leftOpen: readonly string[] = [];
  let processorMs: number | undefined;
  const timer = setTimeout(() => {
    const since = tests.length === 0 ? 'of its beginning' : `after "${tests.at(-1)?.title}"`;
    problem = `no test ended within ${(timeoutMs + graceMs) / 1000} s ${since}`;
    child.kill('SIGKILL');
  }, timeoutMs + graceMs);

  function takeEnded(report: Ended): void {
    // The tests of a suite that is skipped are not reported.
    if (!report.isSuite || report.outcome === 'skipped') return void tests.push(report);
    if (report.title === file) suiteEnded = true;
    if (report.failure !== undefined && isOwn(report.failure, tests)) problem = report.failure.text;
  }

  return {
    take(report) {
      timer.refresh();
      if (report.kind === 'ended') takeEnded(report);
      else if (report.kind === 'remark') remarks.push(report.text);
      else if (report.kind === 'uncaught') {
        uncaught ??= report.text;
        remarks.push(report.text);
      } else if (report.kind === 'file-ended') {
        processorMs = report.processorMs;
        leftOpen = report.leftOpen;
      }
    },
    isOver: () => suiteEnded && processorMs !== undefined,
    hasEnded: () => processorMs !== undefined,
    result(cause) {
      clearTimeout(timer);
      const durationMs = performance.now() - startedAt;
      problem ??= cause ?? problemOf(tests, leftOpen, uncaught);
      return {
        file,
        tests,
        remarks,
        problem,
        leftOpen,
        durationMs,
        processorMs: processorMs ?? 0,
      };
    },
  };
}

/**
 * A test that failed may not have come to where it closes what it opened.
 * @param uncaught an error that nothing caught; Node fails the test that it comes from, unless that has ended
 */
function problemOf(
  tests: readonly Ended[],
  leftOpen: readonly string[],
  uncaught: string | undefined,
): string | undefined {
  if (tests.length === 0) return uncaught ?? 'the file has no tests';
  if (tests.some(({ failure }) => failure !== undefined)) return undefined;
  return uncaught ?? (leftOpen.length > 0 ? `the file leaves open: ${leftOpen.join(', ')}` : undefined);
}

/** True if a suite failed for a reason that none of its tests shows. */
function isOwn(failure: Failure, tests: readonly Ended[]): boolean {
  if (isTimeout(failure)) return tests.every((test) => test.failure === undefined);
  return failure.type !== 'subtestsFailed';
}

function isTimeout({ type }: Failure): boolean {
  return type === 'testTimeoutFailure';
}

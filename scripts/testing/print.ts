/** The output of a run: a line a file, what failed in full, and the counts. */
import { relative } from 'node:path';
import { repositoryRoot } from '../source-tree.ts';
import type { Ended } from './protocol.ts';
import type { FileResult } from './run-files.ts';

/** @param isVerbose a line for each test as well */
export function printFile(result: FileResult, isVerbose: boolean): void {
  const { file, tests, remarks, problem, durationMs } = result;
  for (const remark of remarks) console.log(`  ℹ ${indent(remark)}`);
  if (isVerbose) for (const test of tests) console.log(`  ${signOf(test)} ${test.title} (${ms(test)})`);
  const skipped = countOf(tests, 'skipped');
  const counted = `${tests.length} tests${skipped === 0 ? '' : `, ${skipped} skipped`}`;
  const isGood = problem === undefined && countOf(tests, 'failed') === 0;
  console.log(`${isGood ? '✔' : '✖'} ${pathOf(file)} (${counted}, ${Math.round(durationMs)} ms)`);
  if (problem !== undefined) console.log(`  ${indent(problem)}`);
}

/** Prints what failed, the counts, and as the last line "N passed, N failed". @returns whether the run is good */
export function printTotals(results: readonly FileResult[], durationMs: number): boolean {
  const tests = results.flatMap((result) => result.tests);
  const problems = results.filter(({ problem }) => problem !== undefined);
  const passed = countOf(tests, 'passed');
  const failed = countOf(tests, 'failed') + problems.length;
  if (failed > 0) printFailures(tests, problems);
  for (const [name, count] of [
    ['files', results.length],
    ['tests', tests.length],
    ['pass', passed],
    ['fail', failed],
    ['skipped', countOf(tests, 'skipped')],
    ['duration_ms', Math.round(durationMs)],
  ]) {
    console.log(`ℹ ${name} ${count}`);
  }
  console.log(`\n${passed} passed, ${failed} failed`);
  return passed > 0 && failed === 0;
}

function printFailures(tests: readonly Ended[], problems: readonly FileResult[]): void {
  console.log('\n✖ failing tests:');
  for (const test of tests) {
    if (test.failure === undefined) continue;
    console.log(
      `\ntest at ${pathOf(test.at)}\n✖ ${test.title} (${ms(test)})\n  ${indent(test.failure.text)}`,
    );
  }
  for (const { file, problem = '' } of problems) {
    console.log(`\ntest at ${pathOf(file)}:1:1\n✖ ${pathOf(file)}\n  ${indent(problem)}`);
  }
  console.log('');
}

/** The files by processor time, the most first. */
export function printProcessorTimes(results: readonly FileResult[]): void {
  const sorted = [...results].sort((one, other) => other.processorMs - one.processorMs);
  console.log('\n processor s  elapsed s  tests  file');
  for (const { file, tests, durationMs, processorMs } of sorted) {
    const cells = [
      seconds(processorMs).padStart(12),
      seconds(durationMs).padStart(10),
      `${tests.length}`.padStart(6),
    ];
    console.log(`${cells.join(' ')}  ${pathOf(file)}`);
  }
  const total = sorted.reduce((sum, { processorMs }) => sum + processorMs, 0);
  console.log(`${seconds(total).padStart(12)} in all\n`);
}

function countOf(tests: readonly Ended[], outcome: Ended['outcome']): number {
  return tests.filter((test) => test.outcome === outcome).length;
}

function signOf({ outcome }: Ended): string {
  return outcome === 'failed' ? '✖' : outcome === 'skipped' ? '﹣' : '✔';
}

function ms({ durationMs }: Ended): string {
  return `${Math.round(durationMs)} ms`;
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(2);
}

function pathOf(file: string): string {
  return relative(repositoryRoot, file);
}

function indent(text: string): string {
  return text.replaceAll('\n', '\n  ');
}

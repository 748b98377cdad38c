/**
 * Files stay at or below 500 lines (tests: 600) and functions at or below 70, unless scripts/size-exceptions.ts says
 * why not; no file passes 600 whatever its reason. The body of `describe` is not counted: it only groups tests.
 *
 * Usage: node scripts/checks/sizes.ts
 */
import { parseSource } from '../parse-source.ts';
import type { SizeException } from '../size-exceptions.ts';
import { sizeExceptions } from '../size-exceptions.ts';
import { listCode, readText } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

export const fileLinesMax = 500;
const fileLinesHardMax = 600;
const functionLinesMax = 70;

/** How far above the real size an exception may stand before it has to be lowered. */
const slackLinesMax = 20;

const exceptionsFile = 'scripts/size-exceptions.ts';

type Measured = {
  readonly line: number;
  readonly what: string;
  readonly lines: number;
  readonly limit: number;
};

/** Measures every code file and compares with the exceptions (the repository's own, unless others are given). */
export function findSizeProblems(
  root: string,
  exceptions: readonly SizeException[] = sizeExceptions,
): readonly Problem[] {
  const problems: Problem[] = [];
  const needed = new Map<SizeException, number>();
  for (const file of listCode(root)) {
    const text = readText(root, file);
    if (countLines(text) > fileLinesHardMax) {
      const message = `${countLines(text)} lines: no file may have more than ${fileLinesHardMax}; split it`;
      problems.push({ file, message });
      continue;
    }
    for (const { line, what, lines, limit } of measure(file, text)) {
      if (lines <= limit) continue;
      const exception = exceptions.find((each) => each.file === file && (each.function ?? '') === what);
      if (exception !== undefined) needed.set(exception, Math.max(lines, needed.get(exception) ?? 0));
      if (lines <= (exception?.linesMax ?? limit)) continue;
      const subject = what === '' ? 'The file' : `The function ${what}`;
      problems.push({
        file,
        line,
        message: `${subject} has ${lines} lines, the limit is ${exception?.linesMax ?? limit}`,
      });
    }
  }
  return [...problems, ...findStale(exceptions, needed)];
}

function measure(file: string, text: string): readonly Measured[] {
  const limit = file.startsWith('test/') ? fileLinesHardMax : fileLinesMax;
  const functions = parseSource(file, text).functions.filter(({ groupsTests }) => !groupsTests);
  return [
    { line: 1, what: '', lines: countLines(text), limit },
    ...functions.map(({ name, line, lines }) => ({ line, what: name, lines, limit: functionLinesMax })),
  ];
}

function findStale(exceptions: readonly SizeException[], needed: ReadonlyMap<SizeException, number>) {
  const problems: Problem[] = [];
  for (const exception of exceptions) {
    const lines = needed.get(exception);
    const subject = [exception.file, exception.function].filter(Boolean).join(' ');
    if (lines === undefined) {
      problems.push({ file: exceptionsFile, message: `${subject} needs no exception: remove it` });
    } else if (exception.linesMax - lines > slackLinesMax) {
      problems.push({
        file: exceptionsFile,
        message: `${subject} has ${lines} lines: lower its ${exception.linesMax}`,
      });
    }
  }
  return problems;
}

function countLines(text: string): number {
  const newlines = text.split('\n').length - 1;
  return text.endsWith('\n') || text === '' ? newlines : newlines + 1;
}

if (import.meta.main) await runAlone(findSizeProblems);

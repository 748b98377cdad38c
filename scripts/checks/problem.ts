/**
 * The findings of a check, and their wording. Every check is a function from a root folder to a list of problems:
 * the test runner asserts that the list is empty, and the same script run alone prints it.
 */
import { repositoryRoot } from '../source-tree.ts';

export type Problem = {
  /** Path relative to the root. */
  readonly file: string;
  readonly line?: number;
  /** What is wrong and what is wanted, in one sentence. */
  readonly message: string;
};

export type Check = (root: string) => readonly Problem[] | Promise<readonly Problem[]>;

/** One line a problem, as editors and terminals link it. */
export function formatProblems(problems: readonly Problem[]): string {
  return problems
    .map(({ file, line, message }) => `${file}${line === undefined ? '' : `:${line}`}  ${message}`)
    .join('\n');
}

/** Runs one check on the repository, prints what it finds and sets the exit code. */
export async function runAlone(check: Check): Promise<void> {
  const problems = await check(repositoryRoot);
  if (problems.length > 0) console.log(formatProblems(problems));
  console.log(problems.length === 1 ? '1 problem' : `${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

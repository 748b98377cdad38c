/**
 * Throw-away trees laid out like the repository, in which a test plants the fault that a check has to find.
 */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Problem } from '../../scripts/checks/problem.ts';
import { formatProblems } from '../../scripts/checks/problem.ts';
import { readText, repositoryRoot } from '../../scripts/source-tree.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

/** Makes a tree of the given files (path to text) and removes it when the test ends. Returns its root. */
export function makeTree(_test: TestContext, files: Readonly<Record<string, string>>): string {
  const root = temporaryFolder();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

/** Texts of the repository's own files, to be part of a tree. */
export function ownFiles(...paths: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(paths.map((path) => [path, readText(repositoryRoot, path)]));
}

/** Lets a tree use the packages that the repository has installed. */
export function linkModules(root: string): void {
  symlinkSync(join(repositoryRoot, 'node_modules'), join(root, 'node_modules'));
}

/** Fails with the problems as a reader wants to see them, not with a dump of objects. */
export function assertNoProblems(problems: readonly Problem[]): void {
  if (problems.length > 0) assert.fail(`\n${formatProblems(problems)}`);
}

/** Where the problems are and how each begins, for comparison with what was planted. */
export function placesOf(problems: readonly Problem[]): readonly string[] {
  return problems.map(({ file, line }) => (line === undefined ? file : `${file}:${line}`)).sort();
}

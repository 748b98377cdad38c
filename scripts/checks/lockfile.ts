/**
 * package-lock.json can be installed anywhere by `npm ci`: it agrees with package.json, holds the optional packages
 * of every platform, and names no host that packages were fetched from.
 *
 * Usage: node scripts/checks/lockfile.ts
 */
import type { Lockfile } from '../complete-lockfile.ts';
import { findMissingPackages } from '../complete-lockfile.ts';
import { readText } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

const file = 'package-lock.json';

/** Compares the lockfile with package.json and with itself. */
export function findLockfileProblems(root: string): readonly Problem[] {
  const lockfile = JSON.parse(readText(root, file)) as Lockfile;
  const manifest = JSON.parse(readText(root, 'package.json')) as Record<string, unknown>;
  const problems: Problem[] = [];
  for (const group of ['dependencies', 'devDependencies', 'optionalDependencies'] as const) {
    const wanted = JSON.stringify(manifest[group] ?? {});
    const locked = JSON.stringify(lockfile.packages['']?.[group] ?? {});
    if (inOrder(wanted) === inOrder(locked)) continue;
    problems.push({ file, message: `The ${group} differ from package.json: run npm install` });
  }
  for (const { parent, name } of findMissingPackages(lockfile)) {
    const needed = parent === '' ? 'package.json' : parent;
    problems.push({ file, message: `${name}, which ${needed} requires, is missing: run npm run lockfile` });
  }
  for (const [path, entry] of Object.entries(lockfile.packages)) {
    if (entry.resolved !== undefined && entry.link !== true)
      problems.push({ file, message: `${path} names the host of a registry: remove its member resolved` });
  }
  return problems;
}

function inOrder(versions: string): string {
  const entries = Object.entries(JSON.parse(versions) as Record<string, string>);
  return JSON.stringify(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

if (import.meta.main) await runAlone(findLockfileProblems);

/**
 * Files and folders are named for the thing or the operation they hold: kebab-case, and none of the names that say
 * nothing. `session-manager.ts` falls as `manager.ts` does; `shared-secret.ts` is a thing and stands.
 *
 * Usage: node scripts/checks/names.ts
 */
import { codeFolders, listCode } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

/** Names that would take in anything. */
const emptyNames: ReadonlySet<string> = new Set([
  ...['base', 'common', 'helper', 'helpers', 'interfaces', 'lib', 'manager', 'managers', 'misc'],
  ...['service', 'services', 'shared', 'types', 'util', 'utils'],
]);

/** Names of source files that a reader can tell apart only by their folders. */
const vagueNames: ReadonlySet<string> = new Set([
  ...['asked', 'begin', 'declare', 'made-of', 'parts', 'resources', 'thread', 'wire'],
]);

/** Last words that turn a good name into one of those. */
const emptyEndings: ReadonlySet<string> = new Set([
  ...['helper', 'helpers', 'manager', 'managers', 'service', 'services', 'util', 'utils'],
]);

// "accept.ts", "accept-query.test.ts", "comity.config.ts"
const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$/;

/** Judges each code file's name and each folder's on the way to it; a folder is reported once. */
export function findNameProblems(root: string): readonly Problem[] {
  const problems: Problem[] = [];
  const judged = new Set<string>(codeFolders);
  for (const file of listCode(root)) {
    const parts = file.split('/');
    for (let count = 1; count <= parts.length; count += 1) {
      const path = parts.slice(0, count).join('/');
      if (judged.has(path)) continue;
      judged.add(path);
      const name = parts[count - 1] ?? '';
      const message = judgeName(name) ?? judgeSourceName(path, name);
      if (message !== undefined) problems.push({ file: path, message });
    }
  }
  return problems;
}

function judgeName(name: string): string | undefined {
  if (!kebabCase.test(name)) return `"${name}" is not kebab-case`;
  const stem = name.split('.')[0] ?? '';
  const ending = stem.split('-').at(-1) ?? '';
  if (emptyNames.has(stem)) return `"${stem}" does not say what the file contains`;
  if (emptyEndings.has(ending))
    return `"${stem}" ends in "${ending}", which has no meaning: name the thing or the action`;
  return undefined;
}

function judgeSourceName(path: string, name: string): string | undefined {
  const stem = name.split('.')[0] ?? '';
  if (!path.startsWith('src/') || !name.endsWith('.ts') || !vagueNames.has(stem)) return undefined;
  return `"${stem}" has a meaning only with its folder: name the thing`;
}

if (import.meta.main) await runAlone(findNameProblems);

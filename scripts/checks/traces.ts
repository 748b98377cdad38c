/**
 * Nothing in the repository depends on the machine it was written on: no absolute paths of a work folder, no package
 * registry named as a host, and no marker of unfinished work without the issue that will finish it.
 *
 * Usage: node scripts/checks/traces.ts
 */
import { listFiles, readText } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

const binaryFile = /\.(png|jpe?g|gif|ico|webp|woff2?|gz|br|zip|pdf|sqlite)$/;
const codeFile = /\.(ts|tsx|mts|m?js|cjs|sh|sql|css|html|ya?ml)$/;

type Trace = { readonly pattern: RegExp; readonly message: string; readonly onlyCode?: true };

const traces: readonly Trace[] = [
  {
    pattern: /(?<![\w.~*)\]}-])\/(?:work|tmp|home|root|Users)\/\w/,
    message: 'An absolute path of one machine',
  },
  {
    pattern: /\b(?:registry\.[\w-]+\.(?:org|com)|npm\.pkg\.\w+\.com)\b/,
    message: 'A package registry named as a host',
  },
  {
    pattern: /\b(?:TODO|FIXME|XXX|HACK)\b(?!\((?:#\d+|https:\/\/\S+)\))/,
    message: 'Unfinished work without its issue: write (#123) right after the word',
    onlyCode: true,
  },
];

/** Looks through every text file but this one and its test, which have to name what they look for. */
export function findTraces(root: string): readonly Problem[] {
  const own = ['scripts/checks/traces.ts', 'test/repository/traces.test.ts'];
  const problems: Problem[] = [];
  for (const file of listFiles(root)) {
    if (binaryFile.test(file) || own.includes(file)) continue;
    const lines = readText(root, file).split('\n');
    for (const { pattern, message, onlyCode } of traces) {
      if (onlyCode && !codeFile.test(file)) continue;
      for (const [index, line] of lines.entries()) {
        if (pattern.test(line)) problems.push({ file, line: index + 1, message });
      }
    }
  }
  return problems;
}

if (import.meta.main) await runAlone(findTraces);

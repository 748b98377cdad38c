/**
 * Which files reach which: by import, by `new URL('./x', import.meta.url)`, and by naming a path of the repository in a string, as tests do
 * with the program that they start and the configurations that they serve.
 */
import { dirname, posix } from 'node:path';
import { parseSource } from '../parse-source.ts';
import { listCode, packageEntries, readText } from '../source-tree.ts';

/** A path of the repository in a string. */
const namedPath = /['"`]((?:src|test|scripts|bench|examples)\/[\w./-]+\.m?ts)['"`]/g;

/** @returns the files, of those that are code, from which one of `changed` can be reached; `changed` themselves too */
export function filesThatReach(root: string, changed: Iterable<string>): ReadonlySet<string> {
  const users = new Map<string, string[]>();
  for (const file of listCode(root)) {
    for (const target of targetsOf(file, readText(root, file))) {
      const list = users.get(target);
      if (list === undefined) users.set(target, [file]);
      else list.push(file);
    }
  }
  const reached = new Set(changed);
  // A set hands out what is added to it while it is walked.
  for (const file of reached) for (const user of users.get(file) ?? []) reached.add(user);
  return reached;
}

function targetsOf(file: string, text: string): readonly string[] {
  const imported = parseSource(file, text).imports.map(
    ({ specifier }) => packageEntries[specifier] ?? posix.join(dirname(file), specifier),
  );
  const named = [...text.matchAll(namedPath)].map(([, path = '']) => path);
  return [...imported, ...named];
}

/**
 * Every import follows an arrow of scripts/import-table.ts: folders, Node modules and npm packages. Imports of types
 * count, and so does the file that a worker thread is started from. Rows and packages that nothing uses are reported too,
 * so that the table never promises more than the code needs.
 *
 * Usage: node scripts/checks/imports.ts
 */
import { existsSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import type { FolderRow } from '../folder-row.ts';
import { importTable } from '../import-table.ts';
import type { ImportEdge } from '../parse-source.ts';
import { parseSource } from '../parse-source.ts';
import { listCode, packageEntries, readText } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

const tableFile = 'scripts/import-table.ts';

const codeFile = /\.[cm]?[jt]sx?$/;

/** Folders in which every file needs a row. */
const tabledFolders = ['src', 'conduct', 'examples'];

/** Holds a tree to a table (the repository's own, unless another is given) and to its package.json. */
export function findImportProblems(
  root: string,
  table: readonly FolderRow[] = importTable,
): readonly Problem[] {
  const problems: Problem[] = [...findTableProblems(root, table)];
  const usedPackages = new Map<FolderRow, Set<string>>(table.map((row) => [row, new Set()]));
  const { dependencies, bundled } = readDependencies(root);
  for (const file of listCode(root, tabledFolders)) {
    const row = rowOf(table, file);
    if (row === undefined) {
      problems.push({ file, message: `No row of ${tableFile} covers this file` });
      continue;
    }
    for (const edge of parseSource(file, readText(root, file)).imports) {
      const name = packageName(edge.specifier);
      if (name !== undefined) usedPackages.get(row)?.add(name);
      const message = judge(table, row, file, edge, new Set([...dependencies, ...bundled]));
      if (message !== undefined) problems.push({ file, line: edge.line, message });
    }
  }
  return [...problems, ...findUnusedPackages(usedPackages, dependencies)];
}

/** Says why an import is not allowed, or nothing. */
function judge(
  table: readonly FolderRow[],
  row: FolderRow,
  file: string,
  { specifier, kind }: ImportEdge,
  dependencies: ReadonlySet<string>,
): string | undefined {
  const entry = packageEntries[specifier];
  if (specifier.startsWith('.') || entry !== undefined) {
    const target = entry ?? posix.join(dirname(file), specifier);
    // A URL of code starts a worker; any other is read at run time, as the manifest is.
    if (kind === 'url' && !codeFile.test(target)) return undefined;
    const targetRow = rowOf(table, target);
    if (targetRow === undefined) return `${row.folder} may not import "${target}", which no row covers`;
    if (targetRow === row || row.may.includes(targetRow.folder)) return undefined;
    return `${row.folder} may not import from ${targetRow.folder} ("${specifier}")`;
  }
  if (specifier.startsWith('node:')) {
    if (row.node === 'any' || row.node.includes(specifier)) return undefined;
    return `${row.folder} may not import ${specifier}`;
  }
  const name = packageName(specifier) ?? specifier;
  if (!row.packages.includes(name)) return `${row.folder} may not import the package ${name}`;
  // An example shows how something is used in a project of one's own, which has what it needs.
  const isExample = file.startsWith('examples/');
  if (!dependencies.has(name) && !isExample) return `${name} is not among the dependencies of package.json`;
  return undefined;
}

/** Rows without code, arrows to no row, and arrows that lead back to where they came from. */
function findTableProblems(root: string, table: readonly FolderRow[]): readonly Problem[] {
  const problems: Problem[] = [];
  const rows = new Map(table.map((row) => [row.folder, row]));
  if (rows.size < table.length) problems.push({ file: tableFile, message: 'The folder has two rows' });
  for (const row of table) {
    if (!existsSync(join(root, row.folder))) {
      problems.push({ file: tableFile, message: `The folder ${row.folder} does not exist: remove its row` });
    }
    for (const target of row.may) {
      if (!rows.has(target))
        problems.push({ file: tableFile, message: `${row.folder} may import ${target}, which has no row` });
      else if (reaches(rows, target, row.folder)) {
        problems.push({
          file: tableFile,
          message: `The edge from ${row.folder} to ${target} closes a cycle`,
        });
      }
    }
  }
  return problems;
}

function reaches(rows: ReadonlyMap<string, FolderRow>, from: string, to: string): boolean {
  const seen = new Set<string>();
  const pending = [from];
  for (let current = pending.pop(); current !== undefined; current = pending.pop()) {
    if (current === to) return true;
    if (seen.has(current)) continue;
    seen.add(current);
    pending.push(...(rows.get(current)?.may ?? []));
  }
  return false;
}

function findUnusedPackages(
  used: ReadonlyMap<FolderRow, ReadonlySet<string>>,
  dependencies: readonly string[],
): readonly Problem[] {
  const problems: Problem[] = [];
  for (const [row, names] of used) {
    for (const name of row.packages) {
      if (names.has(name)) continue;
      problems.push({
        file: tableFile,
        message: `${row.folder} does not import ${name}: remove it from its row`,
      });
    }
  }
  const everywhere = new Set([...used.values()].flatMap((names) => [...names]));
  for (const name of dependencies) {
    if (!everywhere.has(name))
      problems.push({ file: 'package.json', message: `No file of src/ imports ${name}` });
  }
  return problems;
}

function rowOf(table: readonly FolderRow[], file: string): FolderRow | undefined {
  let longest: FolderRow | undefined;
  for (const row of table) {
    const covers = file === row.folder || file.startsWith(`${row.folder}/`);
    if (covers && row.folder.length > (longest?.folder.length ?? 0)) longest = row;
  }
  return longest;
}

/** `@scope/name` of `@scope/name/part`; nothing for a path or a module of Node. */
function packageName(specifier: string): string | undefined {
  if (specifier.startsWith('.') || specifier.startsWith('node:')) return undefined;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** Code of `devDependencies` is part of the bundle; `dependencies` are what the declarations of the package import as well. */
function readDependencies(root: string): Record<'dependencies' | 'bundled', readonly string[]> {
  const manifest: { dependencies?: object; devDependencies?: object } = JSON.parse(
    readText(root, 'package.json'),
  );
  return {
    dependencies: Object.keys(manifest.dependencies ?? {}),
    bundled: Object.keys(manifest.devDependencies ?? {}),
  };
}

if (import.meta.main) await runAlone(findImportProblems);

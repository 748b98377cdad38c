/**
 * Lists the files of the repository, or of any tree laid out like it, for the checks.
 * It walks folders and does not ask git, so that an unpacked archive can be checked as well.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Absolute path of the folder that holds package.json. */
export const repositoryRoot: string = dirname(dirname(fileURLToPath(import.meta.url)));

/** The entry points of the package by the names under which configurations and examples import them. */
export const packageEntries: Readonly<Record<string, string>> = {
  comity: 'src/index.ts',
  'comity/client': 'src/client/index.ts',
  'comity/testing': 'src/testing.ts',
  'comity/webhooks': 'src/webhooks/index.ts',
};

/** Top-level folders that hold code, whatever they are written in. */
export const codeFolders: readonly string[] = [
  ...['src', 'conduct', 'test', 'scripts', 'bench', 'examples', 'dashboard'],
];

const codeExtensions: ReadonlySet<string> = new Set(['.ts', '.tsx', '.mts', '.js', '.mjs', '.cjs']);

/** Folders that are made, not written: nothing in them is checked. */
const madeFolders: ReadonlySet<string> = new Set(['node_modules', '.git', 'dist', 'coverage', 'data']);

/** Paths of every file below a folder, relative to the root, with forward slashes, in order. */
export function listFiles(root: string, folder = ''): readonly string[] {
  const found: string[] = [];
  const pending = [folder];
  for (let current = pending.pop(); current !== undefined; current = pending.pop()) {
    for (const entry of readFolder(join(root, current))) {
      const path = current === '' ? entry.name : `${current}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!madeFolders.has(entry.name) && !entry.name.startsWith('.comity-')) pending.push(path);
      } else if (entry.isFile()) found.push(path);
    }
  }
  return found.sort();
}

/** Paths of the code files below the given top-level folders. */
export function listCode(root: string, folders: readonly string[] = codeFolders): readonly string[] {
  return folders
    .flatMap((folder) => listFiles(root, folder))
    .filter((path) => codeExtensions.has(extname(path)));
}

/** Text of one file, by its path relative to the root. */
export function readText(root: string, path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

function readFolder(path: string) {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch (error) {
    // A tree that is not finished yet has no such folder; anything else is a fault worth seeing.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

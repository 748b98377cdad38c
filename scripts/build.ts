/**
 * Makes dist/, the package as it is published: the bundle and the declarations of its entry points, and nothing else.
 *
 * Usage: npm run build
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { bundle } from './bundle.ts';
import { parseSource } from './parse-source.ts';
import { listFiles, packageEntries, readText, repositoryRoot } from './source-tree.ts';
import { thinSourceMap } from './thin-source-map.ts';

/** Builds a tree laid out like the repository into its dist/. */
export async function build(root: string): Promise<void> {
  const bundled = await bundle(root);
  for (const path of listFiles(root, 'dist').map((file) => join(root, file))) {
    // What setup.mjs compares the sources with, which is not published.
    if (!bundled.has(path) && basename(path) !== '.bundled') rmSync(path);
    else if (path.endsWith('.js.map')) writeFileSync(path, thinSourceMap(readFileSync(path, 'utf8')));
  }
  const compiler = join(repositoryRoot, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [compiler, '--project', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  const declared = declarationsOf(root);
  for (const file of listFiles(root, 'dist')) {
    if (file.endsWith('.d.ts') && !declared.has(file)) rmSync(join(root, file));
  }
}

/** The declarations that those of the entry points import: the compiler writes one for each source, most of them internal. */
function declarationsOf(root: string): ReadonlySet<string> {
  const declarationOf = (source: string): string => source.replace(/^src(.*)\.ts$/, 'dist$1.d.ts');
  const found = new Set(Object.values(packageEntries).map(declarationOf));
  // A set hands out what is added to it while it is walked.
  for (const file of found) {
    for (const { specifier } of parseSource(file, readText(root, file)).imports) {
      if (specifier.startsWith('.'))
        found.add(posix.join(dirname(file), specifier).replace(/\.ts$/, '.d.ts'));
    }
  }
  return found;
}

if (import.meta.main) await build(repositoryRoot);

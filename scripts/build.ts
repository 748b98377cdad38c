/**
 * Makes dist/, the package as it is published: JavaScript and declarations from src/, and its other files as they are.
 * The compiler turns the `.ts` of an import into `.js` but leaves the one in `new URL('./worker.ts', import.meta.url)`;
 * that is done here.
 *
 * Usage: npm run build
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { viewerCopy, viewerModule } from '../src/openapi/docs-assets.ts';
import { bundleTypebox } from './bundle-typebox.ts';
import { listFiles, repositoryRoot } from './source-tree.ts';

/** Builds a tree laid out like the repository into its dist/. */
export function build(root: string): void {
  const output = join(root, 'dist');
  rmSync(output, { recursive: true, force: true });
  const compiler = join(repositoryRoot, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [compiler, '--project', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  for (const file of listFiles(root, 'src')) {
    const target = join(output, file.slice('src/'.length));
    if (file.endsWith('.ts')) renameWorkers(target.replace(/\.ts$/, '.js'));
    else {
      mkdirSync(dirname(target), { recursive: true });
      cpSync(join(root, file), target);
    }
  }
}

/** The documentation pages need one file of the viewer's package, which is therefore no dependency of the published one. */
function copyViewer(output: string): void {
  cpSync(fileURLToPath(import.meta.resolve(viewerModule)), join(output, 'openapi', viewerCopy));
}

const workerUrl = /(new URL\(\s*['"]\.{1,2}\/[^'"]+)\.ts(['"],\s*import\.meta\.url)/g;

function renameWorkers(path: string): void {
  const text = readFileSync(path, 'utf8');
  const renamed = text.replace(workerUrl, '$1.js$2');
  if (renamed !== text) writeFileSync(path, renamed);
}

if (import.meta.main) {
  build(repositoryRoot);
  copyViewer(join(repositoryRoot, 'dist'));
  await bundleTypebox(join(repositoryRoot, 'dist/typebox'));
}

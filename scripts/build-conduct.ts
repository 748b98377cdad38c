/**
 * Bundles the suite of conduct into conduct/dist/main.js, the one file of the package comity-conduct beside its README.
 *
 * Usage: node scripts/build-conduct.ts; `npm pack` and `npm publish` in conduct/ do it.
 */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { repositoryRoot } from './source-tree.ts';

const executable = 0o755;

/** @returns the path of the file */
export async function buildConduct(root: string): Promise<string> {
  const file = join(root, 'conduct/dist/main.js');
  await build({
    absWorkingDir: root,
    entryPoints: ['conduct/main.ts'],
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    outfile: file,
    legalComments: 'none',
    logLevel: 'silent',
  });
  chmodSync(file, executable);
  return file;
}

if (import.meta.main) await buildConduct(repositoryRoot);

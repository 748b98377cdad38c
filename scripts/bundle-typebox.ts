/**
 * Puts the schema library, some 700 modules, into nine, which src/typebox-bundle.ts then uses in its place
 * (docs/decisions/0032-typebox-in-a-few-files.md).
 *
 * Usage: node scripts/bundle-typebox.ts; scripts/setup.mjs does it.
 */
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { typeboxFiles } from '../src/typebox-bundle.ts';
import { repositoryRoot } from './source-tree.ts';

/** Appears at once and whole, whoever looks meanwhile. @param folder replaced if it is there */
export async function bundleTypebox(folder: string): Promise<void> {
  const made = `${folder}.${process.pid}`;
  const entryPoints = [...typeboxFiles].map(([specifier, file]) => ({
    in: fileURLToPath(import.meta.resolve(specifier)),
    out: file.replace(/\.mjs$/, ''),
  }));
  mkdirSync(dirname(folder), { recursive: true });
  await build({
    entryPoints,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    outExtension: { '.js': '.mjs' },
    outdir: made,
    logLevel: 'silent',
  });
  rmSync(folder, { recursive: true, force: true });
  renameSync(made, folder);
}

if (import.meta.main) await bundleTypebox(join(repositoryRoot, 'node_modules/.cache/comity/typebox'));

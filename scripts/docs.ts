/**
 * Writes the pages of docs/ that are made from the code, and says which of them changed.
 *
 * Usage: npm run docs
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findGeneratedDocsProblems } from './checks/generated-docs.ts';
import { renderGeneratedPages } from './generated-docs.ts';
import { repositoryRoot } from './source-tree.ts';

const stale = new Set((await findGeneratedDocsProblems(repositoryRoot)).map(({ file }) => file));
for (const { path, text } of await renderGeneratedPages(repositoryRoot)) {
  if (!stale.has(path)) continue;
  mkdirSync(dirname(join(repositoryRoot, path)), { recursive: true });
  writeFileSync(join(repositoryRoot, path), text);
  console.log(`${path} written`);
}
if (stale.size === 0) console.log('All generated pages are up to date');

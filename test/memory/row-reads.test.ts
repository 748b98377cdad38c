/** Who reads whole rows is listed with its octets, since nothing but their number ends such a read. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { listCode } from '../../scripts/source-tree.ts';
import { rowReads } from '../../src/memory/row-reads.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** What else is called so: sessions of a database, rows of a file, and pages of a listing, which its octets end. */
const others = /\b(?:session|elsewhere|other|stored|taking|listing)\.rows\(/g;
/** The store that wraps an engine, the unit of a function, which adds its own writes, and the loop over batches. */
const wrappers: ReadonlySet<string> = new Set([
  'src/store/store.ts',
  'src/store/in-batches.ts',
  'src/store/stages.ts',
  'src/logic/transaction/overlay.ts',
]);

test('every caller of Plan.rows, at once or in batches, is listed with the length of its rows', () => {
  const callers = listCode(root, ['src']).filter((file) => {
    if (wrappers.has(file) || file.startsWith('src/store/sqlite/') || file.startsWith('src/store/postgres/'))
      return false;
    return /\.rows\(|\browBatches\(/.test(readFileSync(`${root}${file}`, 'utf8').replaceAll(others, ''));
  });
  assert.deepEqual(callers.sort(), rowReads.map(({ file }) => file).sort());
});

test('none reads more than 16 MiB at once', () => {
  for (const { file, rows, rowOctets } of rowReads) assert.ok(rows * rowOctets <= 16 * 1024 * 1024, file);
});

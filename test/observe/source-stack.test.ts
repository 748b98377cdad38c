import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { transform } from 'esbuild';
import { createSourceStacks, placesKnownMax } from '../../src/observe/source-stack.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const source = `/** A header that is not in the bundle. */
type Shape = { readonly a: number };
export const one: Shape = { a: 1 };

export function two(shape: Shape): number { if (shape.a > 1) throw new Error('ü'); return shape.a + three(); }
export const three = (): number =>
  one.a;
`;

async function bundled() {
  const folder = temporaryFolder();
  const { code, map } = await transform(source, {
    loader: 'ts',
    sourcemap: true,
    minifyWhitespace: true,
    sourcefile: '../src/three.ts',
  });
  writeFileSync(join(folder, 'chunk-A.js.map'), map);
  return { folder: `${pathToFileURL(folder)}/`, code, map: new SourceMap(JSON.parse(map)) };
}

test('names the places of the sources, as the parser of Node does', async () => {
  const { folder, code, map } = await bundled();
  const stackOf = createSourceStacks(folder);
  for (const [line, text] of code.trimEnd().split('\n').entries()) {
    for (let column = 1; column <= text.length; column += 1) {
      const expected = map.findEntry(line, column - 1);
      if (!('originalLine' in expected)) continue;
      const frame = (place: string) => `Error: x\n    at two (${place})\n    at node:fs:1:2`;
      assert.equal(
        stackOf(frame(`${folder}chunk-A.js:${line + 1}:${column}`)),
        frame(`src/three.ts:${expected.originalLine + 1}:${expected.originalColumn + 1}`),
      );
    }
  }
});

test('leaves alone what it cannot place', async () => {
  const { folder } = await bundled();
  const stackOf = createSourceStacks(folder);
  for (const place of ['chunk-B.js:1:1', 'chunk-A.js:99:1', 'file.ts:1:1', '']) {
    const stack = `Error: of ${folder}\n    at ${folder}${place}\n    at file:///x/chunk-A.js:1:1`;
    assert.equal(stackOf(stack), stack);
  }
});

test('goes on after more places than it remembers', async () => {
  const { folder } = await bundled();
  const stackOf = createSourceStacks(folder);
  const first = `at ${folder}chunk-A.js:1:1`;
  const expected = stackOf(first);
  for (let line = 1; line <= placesKnownMax + 1; line += 1) stackOf(`at ${folder}chunk-A.js:${line}:1`);
  assert.equal(stackOf(first), expected);
});

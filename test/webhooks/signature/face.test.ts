/** `comity/webhooks` as other runtimes see it: nothing of the server, of Node or of another package comes with it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { test } from 'node:test';
import * as face from '../../../src/webhooks/index.ts';

const entry = 'src/webhooks/index.ts';

/** `from '...'`, `import '...'` and `import('...')`. */
const importing = /\b(?:from|import)[\s(]+'([^']+)'/g;

/** Every file that the entry leads to, and every module that none of them is. */
function graphOf(file: string): {
  readonly files: ReadonlySet<string>;
  readonly others: ReadonlySet<string>;
} {
  const files = new Set([file]);
  const others = new Set<string>();
  for (const each of files) {
    for (const [, specifier = ''] of readFileSync(each, 'utf8').matchAll(importing)) {
      if (specifier.startsWith('.')) files.add(posix.join(posix.dirname(each), specifier));
      else others.add(specifier);
    }
  }
  return { files, others };
}

test('leads to files of its own rooms alone, and imports no module of Node and no package', () => {
  const { files, others } = graphOf(entry);
  assert.ok(files.size > 8);
  assert.deepEqual(
    [...files].filter(
      (file) =>
        file !== entry &&
        !/^src\/webhooks\/((signature|receive)\/[\w-]+|presets|vendor-presets|sender-rule|exact-json)\.ts$/.test(
          file,
        ),
    ),
    [],
  );
  assert.deepEqual([...others], []);
  // The server's own face does import modules, so that the search is known to find them.
  assert.ok(graphOf('src/index.ts').others.has('node:fs'));
});

test('is published as comity/webhooks, where the build puts it', () => {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    exports: Record<string, unknown>;
  };
  assert.deepEqual(exports['./webhooks'], {
    'comity-source': './src/webhooks/index.ts',
    types: './dist/webhooks/index.d.ts',
    default: './dist/webhooks/index.js',
  });
});

test('lets out these names and no others', () => {
  assert.deepEqual(Object.keys(face).sort(), [
    'KeyDiscoveryError',
    'createKeyDiscovery',
    'memoryStore',
    'receive',
    'signPlain',
    'signStandard',
    'signTimestamped',
    'verifyPlain',
    'verifyStandard',
    'verifyTimestamped',
  ]);
});

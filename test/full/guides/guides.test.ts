/**
 * The guides say what the program does: the commands of each run as they stand, against the configuration that the guide
 * shows or the shop, and print what is shown (notation: read-examples.ts).
 */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { runPage } from './run-page.ts';
import { isInstalled } from './shell-session.ts';

/** The machine's curl starts ten times as fast as the one of this repository. */
const realCurl = isInstalled('curl');
const guides = globSync('docs/guides/*.md', { exclude: ['docs/guides/README.md'] }).sort();

// Two at once: a guide waits for seconds where it shows what happens by itself.
describe('the commands of', { concurrency: 2 }, () => {
  for (const guide of guides) {
    test(`${guide} print what it shows`, async () => {
      assert.ok((await runPage(guide, { realCurl })) > 0, 'no example was found');
    });
  }
});

test('every link between the pages leads to a file', () => {
  const pages = [
    'README.md',
    'ARCHITECTURE.md',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    ...globSync(['docs/**/*.md', 'examples/*/README.md']),
  ];
  const broken: string[] = [];
  for (const page of pages) {
    for (const [, target = ''] of readFileSync(page, 'utf8').matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(https?:|#)/.test(target)) continue;
      const file = join(dirname(page), target.split('#', 1)[0] ?? '');
      if (!existsSync(file)) broken.push(`${page}: ${target}`);
    }
  }
  assert.deepEqual(broken, []);
});

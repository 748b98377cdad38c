/**
 * The tour in README.md is what the program does: its commands run as they stand, against the real program, and print what
 * is shown. Once with curl.ts in place of curl, so that no machine skips it, and once with the machine's curl where it is.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { readExamples } from './read-examples.ts';
import { runPage } from './run-page.ts';
import { isInstalled } from './shell-session.ts';

const examplesMin = 25;

test('the commands of README.md print what it shows', async () => {
  const count = await runPage('README.md', { realCurl: false });
  assert.ok(count >= examplesMin, `only ${count} examples were found`);
});

test('they do so with the curl of this machine in bash', {
  skip: isInstalled('curl') ? false : 'no curl here',
}, async () => {
  await runPage('README.md', { realCurl: true });
});

test('README.md leaves out no command but those that start the program', () => {
  for (const { line, reason } of readExamples(readFileSync('README.md', 'utf8')).notRun) {
    assert.match(reason, /^starts the program/, `line ${line}`);
  }
});

/**
 * Runs the commands of README.md against the real program and compares the output with the page: in bash with the
 * machine's curl where it is installed, else with curl.ts in its place, so that no machine skips the test.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { readExamples } from './read-examples.ts';
import { runPage } from './run-page.ts';
import { isInstalled } from './shell-session.ts';

const examplesMin = 7;

test('the commands of README.md print what it shows', async () => {
  const count = await runPage('README.md', { realCurl: isInstalled('curl') });
  assert.ok(count >= examplesMin, `only ${count} examples were found`);
});

test('README.md leaves out no command but those that start the program', () => {
  for (const { line, reason } of readExamples(readFileSync('README.md', 'utf8')).notRun) {
    assert.match(reason, /^starts the program/, `line ${line}`);
  }
});

/** The repository passes each of its checks. What a check finds and what it lets pass has tests beside this file and in test/full/repository. */
import { test } from 'node:test';
import { checks } from '../../scripts/checks/all.ts';
import { repositoryRoot } from '../../scripts/source-tree.ts';
import { assertNoProblems } from './fixture-tree.ts';

for (const [name, check] of Object.entries(checks)) {
  test(`the repository passes the check of ${name}`, async () => {
    assertNoProblems(await check(repositoryRoot));
  });
}

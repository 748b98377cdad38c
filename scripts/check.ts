/**
 * Runs every check of the repository that needs no running program, and prints what they find.
 * `npm test` runs the same checks as tests, in test/repository/checks.test.ts.
 *
 * Usage: npm run check
 */
import { checks } from './checks/all.ts';
import { formatProblems } from './checks/problem.ts';
import { repositoryRoot } from './source-tree.ts';

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  const problems = await check(repositoryRoot);
  if (problems.length > 0) failed += 1;
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  console.log(`${problems.length === 0 ? '✔' : '✖'} ${name}${problems.length === 0 ? '' : `: ${count}`}`);
  if (problems.length > 0) console.log(formatProblems(problems));
}
process.exitCode = failed === 0 ? 0 : 1;

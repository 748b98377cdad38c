/**
 * Runs every check of the repository that needs no running program, and prints what they find.
 * `npm test` runs the same checks as tests, in test/repository/.
 *
 * Usage: npm run check
 */

import { findBoundsProblems } from './checks/bounds.ts';
import { findTypeProblems } from './checks/compile.ts';
import { findCycleProblems } from './checks/cycles.ts';
import { findEmitterProblems } from './checks/emitters.ts';
import { findGeneratedDocsProblems } from './checks/generated-docs.ts';
import { findHeaderProblems } from './checks/headers.ts';
import { findImportProblems } from './checks/imports.ts';
import { findLintProblems } from './checks/lint.ts';
import { findLockfileProblems } from './checks/lockfile.ts';
import { findNameProblems } from './checks/names.ts';
import type { Check } from './checks/problem.ts';
import { formatProblems } from './checks/problem.ts';
import { findSizeProblems } from './checks/sizes.ts';
import { findTraces } from './checks/traces.ts';
import { repositoryRoot } from './source-tree.ts';

const checks: Readonly<Record<string, Check>> = {
  types: findTypeProblems,
  lint: findLintProblems,
  imports: findImportProblems,
  cycles: findCycleProblems,
  emitters: findEmitterProblems,
  sizes: findSizeProblems,
  names: findNameProblems,
  headers: findHeaderProblems,
  bounds: findBoundsProblems,
  traces: findTraces,
  lockfile: findLockfileProblems,
  'generated docs': findGeneratedDocsProblems,
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  const problems = await check(repositoryRoot);
  if (problems.length > 0) failed += 1;
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  console.log(`${problems.length === 0 ? '✔' : '✖'} ${name}${problems.length === 0 ? '' : `: ${count}`}`);
  if (problems.length > 0) console.log(formatProblems(problems));
}
process.exitCode = failed === 0 ? 0 : 1;

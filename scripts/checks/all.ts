/** Every check of the repository, by the name under which its findings are printed. */
import { findBoundsProblems } from './bounds.ts';
import { findCommentProblems } from './comments.ts';
import { findTypeProblems } from './compile.ts';
import { findCycleProblems } from './cycles.ts';
import { findEmitterProblems } from './emitters.ts';
import { findGeneratedDocsProblems } from './generated-docs.ts';
import { findImportProblems } from './imports.ts';
import { findLeafProblems } from './leaves.ts';
import { findLintProblems } from './lint.ts';
import { findLockfileProblems } from './lockfile.ts';
import { findNameProblems } from './names.ts';
import type { Check } from './problem.ts';
import { findSectionProblems } from './sections.ts';
import { findSizeProblems } from './sizes.ts';
import { findSpecificationProblems } from './specification.ts';
import { findTraces } from './traces.ts';

export const checks: Readonly<Record<string, Check>> = {
  types: findTypeProblems,
  lint: findLintProblems,
  imports: findImportProblems,
  cycles: findCycleProblems,
  emitters: findEmitterProblems,
  sizes: findSizeProblems,
  leaves: (root) => findLeafProblems(root),
  names: findNameProblems,
  comments: findCommentProblems,
  bounds: findBoundsProblems,
  traces: findTraces,
  lockfile: findLockfileProblems,
  sections: findSectionProblems,
  specification: (root) => findSpecificationProblems(root),
  'generated docs': findGeneratedDocsProblems,
};

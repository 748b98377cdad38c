/**
 * The error registry (§2.2, §7): a closed list of codes, each with its status, its message and what a
 * client may do next. Every refusal anywhere in the program names one of these; docs/reference/errors.md
 * is rendered from this table, whose parts go by status.
 */
import { badRequestProblems } from './problems/bad-request.ts';
import { refusedAccessProblems } from './problems/refused-access.ts';
import { refusedRequestProblems } from './problems/refused-request.ts';
import { serverFailureProblems } from './problems/server-failure.ts';

export const problems = {
  ...badRequestProblems,
  ...refusedAccessProblems,
  ...refusedRequestProblems,
  ...serverFailureProblems,
};

export type ProblemCode = keyof typeof problems;

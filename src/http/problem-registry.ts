/**
 * The error registry (§2.2, §7): every code of a refusal, with its status, its message and advice for the client. docs/reference/errors.md is
 * generated from it.
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

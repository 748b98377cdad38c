/**
 * Turns the faults of a compiled query into problems. In a query string every fault is 400. In the content of a QUERY,
 * syntax errors are 400, and queries that cannot be executed are 422 (RFC 10008).
 */
import type { Problem } from '../../http/problem.ts';
import type { Fault } from '../query/list-query.ts';

export const alteredCursor: Problem = {
  code: 'query_parameter_invalid',
  message: 'the cursor was altered or belongs to another query',
};

export function parameterProblem(faults: readonly Fault[]): Problem {
  return { code: 'query_parameter_invalid', ...described(faults) };
}

export function queryProblem(faults: readonly Fault[]): Problem {
  const malformed = faults.some(({ kind }) => kind === 'malformed');
  return { code: malformed ? 'content_malformed' : 'query_unprocessable', ...described(faults) };
}

/** The message joins all faults; those with a pointer are listed as well. */
function described(faults: readonly Fault[]): Pick<Problem, 'message' | 'errors'> {
  const [first] = faults;
  if (first === undefined) return {};
  const errors = faults
    .filter(({ pointer }) => pointer !== undefined)
    .map(({ pointer = '', message }) => ({ pointer, message }));
  const message = faults.length === 1 ? first.message : faults.map((fault) => fault.message).join('; ');
  return errors.length === 0 ? { message } : { message, errors };
}

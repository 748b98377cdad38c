/**
 * Faults of a compiled query as problems. In a query component every fault is 400; in the content of a QUERY what does not
 * parse is 400 and what cannot be executed is 422 (RFC 10008).
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

/** One fault is the message; several are listed, each with its place. */
function described(faults: readonly Fault[]): Pick<Problem, 'message' | 'errors'> {
  const [first] = faults;
  if (first === undefined) return {};
  const errors = faults
    .filter(({ pointer }) => pointer !== undefined)
    .map(({ pointer = '', message }) => ({ pointer, message }));
  const message = faults.length === 1 ? first.message : faults.map((fault) => fault.message).join('; ');
  return errors.length === 0 ? { message } : { message, errors };
}

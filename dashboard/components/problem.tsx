/** An error response as a person can act on it: the message, the members at fault, and the way to its explanation. */
import type { JSX } from 'preact';
import { linkTo } from '../route.ts';
import { type Problem, prefix } from '../send.ts';

export function ProblemNote({ problem }: { readonly problem: Problem | undefined }): JSX.Element | null {
  if (problem === undefined) return null;
  return (
    <div class="problem" role="alert">
      <p>
        <strong>{problem.status}</strong> {problem.message}{' '}
        {problem.code === undefined ? null : (
          <a href={`${prefix}/docs/errors#${problem.code}`} target="_blank" rel="noreferrer">
            {problem.code}
          </a>
        )}
      </p>
      {problem.faults.length === 0 ? null : (
        <ul>
          {problem.faults.map(({ pointer, message }) => (
            <li key={`${pointer} ${message}`}>
              <code>{pointer === '' ? 'content' : pointer}</code> {message}
            </li>
          ))}
        </ul>
      )}
      {problem.trace === undefined ? null : (
        <p>
          <a href={linkTo('explain', { trace: problem.trace, status: String(problem.status) })}>
            Why this answer?
          </a>
        </p>
      )}
    </div>
  );
}

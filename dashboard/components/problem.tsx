/** An error response as a person can act on it: the message, the members at fault, and the way to its explanation. */
import type { JSX } from 'preact';
import type { Schema } from '../description.ts';
import { labelOf } from '../presentation.ts';
import { linkTo } from '../route.ts';
import { explained, type Problem, prefix } from '../send.ts';

type ProblemNoteProps = {
  readonly problem: Problem | undefined;
  /** Schema of the refused form, which has the labels of its members. */
  readonly schema?: Schema;
};

export function ProblemNote({ problem, schema }: ProblemNoteProps): JSX.Element | null {
  if (problem === undefined) return null;
  return (
    <div class="problem" role="alert" tabIndex={-1}>
      <p>
        <strong>{problem.status}</strong> {problem.message} <Code code={problem.code} />
      </p>
      {problem.faults.length === 0 ? null : (
        <ul>
          {problem.faults.map(({ pointer, message }) => (
            <li key={`${pointer} ${message}`}>
              <Place pointer={pointer} schema={schema} /> {message}
            </li>
          ))}
        </ul>
      )}
      <ExplainLink problem={problem} />
    </div>
  );
}

/** Leads to the page of explanations with the request that was refused. */
function ExplainLink({ problem }: { readonly problem: Problem }): JSX.Element | null {
  const { request, trace, status } = problem;
  if (request === undefined) return null;
  const { method, path } = request;
  return (
    <p>
      <a
        href={linkTo('explain', { method, path, trace, status: String(status) })}
        onClick={() => {
          explained.value = request;
        }}
      >
        Why this answer?
      </a>
    </p>
  );
}

function Code({ code }: { readonly code: string | undefined }): JSX.Element | null {
  if (code === undefined) return null;
  return (
    <a href={`${prefix}/docs/errors#${code}`} target="_blank" rel="noreferrer">
      {code}
    </a>
  );
}

function Place({ pointer, schema }: { readonly pointer: string; readonly schema: Schema | undefined }) {
  const name = pointer.slice(1);
  if (schema?.properties?.[name] !== undefined) return <strong>{labelOf(schema, name)}</strong>;
  return <code>{pointer === '' ? 'content' : pointer}</code>;
}

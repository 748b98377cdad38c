/** A request on a resource beside its methods, such as the rotation of a secret; the response may be shown only once. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Step } from '../description.ts';
import { isObject, type Problem, problemOf, type Reply, send } from '../send.ts';
import { withoutNulls } from './form-values.ts';
import { ProblemNote } from './problem.tsx';
import { SchemaForm } from './schema-form.tsx';
import { SecretOnce } from './secret-once.tsx';
import { Json } from './value.tsx';

type StepFormProps = {
  readonly step: Step;
  readonly target: string;
  readonly onDone: () => Promise<void>;
};

export function StepForm({ step, target, onDone }: StepFormProps): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [reply, setReply] = useState<Reply | undefined>(undefined);
  const run = async (members: Record<string, unknown>) => {
    const sent = withoutNulls(members);
    const hasContent = step.input !== undefined && Object.keys(sent).length > 0;
    const given = await send('POST', `${target}/${step.name}`, hasContent ? { json: sent } : {});
    setProblem(problemOf(given));
    setReply(given.status < 400 ? given : undefined);
    if (given.status < 400) await onDone();
  };
  const isPlain = Object.keys(step.input?.properties ?? {}).length === 0;
  return (
    <details class="step">
      <summary>{step.summary}</summary>
      {step.description === undefined ? null : <p class="hint">{step.description}</p>}
      {isPlain ? (
        <>
          <ProblemNote problem={problem} />
          <button type="button" class="primary" onClick={() => run({})}>
            {step.summary}
          </button>
        </>
      ) : (
        <SchemaForm schema={step.input ?? {}} submit={step.summary} problem={problem} onSubmit={run} />
      )}
      {reply === undefined ? null : (
        <StepReply reply={reply} name={step.name} onDone={() => setReply(undefined)} />
      )}
    </details>
  );
}

type StepReplyProps = { readonly reply: Reply; readonly name: string; readonly onDone: () => void };

function StepReply({ reply, name, onDone }: StepReplyProps): JSX.Element {
  const secret = isObject(reply.json) ? (reply.json.key ?? reply.json.secret) : undefined;
  if (typeof secret === 'string') return <SecretOnce secret={secret} made={reply.json} onDone={onDone} />;
  return (
    <div role="status">
      <p class="saved">{reply.status === 202 ? 'Accepted.' : 'Done.'}</p>
      {reply.text === '' ? null : <Json value={reply.json ?? reply.text} label={`The response to ${name}`} />}
    </div>
  );
}

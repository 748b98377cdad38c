/** A button for what cannot be undone: it asks once more before it acts, and shows why it was refused. */
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Problem } from '../send.ts';
import { ProblemNote } from './problem.tsx';

type ConfirmButtonProps = {
  /** The verb, such as `Delete`. */
  readonly action: string;
  readonly question: ComponentChildren;
  /** @returns the problem, if it was refused */
  readonly onConfirm: () => Promise<Problem | undefined>;
};

export function ConfirmButton({ action, question, onConfirm }: ConfirmButtonProps): JSX.Element {
  const [isAsked, setAsked] = useState(false);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const confirm = async () => {
    setAsked(false);
    setProblem(await onConfirm());
  };
  return (
    <span>
      {isAsked ? (
        <>
          <strong>{question}</strong>{' '}
          <button type="button" class="danger" onClick={confirm}>
            {action}
          </button>
          <button type="button" onClick={() => setAsked(false)}>
            Keep
          </button>
        </>
      ) : (
        <button type="button" class="danger" onClick={() => setAsked(true)}>
          {`${action}…`}
        </button>
      )}
      <ProblemNote problem={problem} />
    </span>
  );
}

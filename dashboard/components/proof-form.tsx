/** The proof that a change of the second factor requires (§5.8.6): the password before the first factor, then a code or a passkey. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { hasPasskeys, usePasskey } from '../passkeys.ts';
import type { Problem } from '../send.ts';
import { ProblemNote } from './problem.tsx';

export type Proof = { readonly password: string } | { readonly code: string } | { readonly passkey: unknown };

type ProofFormProps = {
  readonly action: string;
  /** The account has a factor. */
  readonly isEnrolled: boolean;
  readonly hasPasskey: boolean;
  /** @returns the problem, if it was refused */
  readonly onProof: (proof: Proof) => Promise<Problem | undefined>;
  readonly onCancel: () => void;
};

export function ProofForm({
  action,
  isEnrolled,
  hasPasskey,
  onProof,
  onCancel,
}: ProofFormProps): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const submit = async (event: Event) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget as HTMLFormElement).get('proof') ?? '').trim();
    setProblem(await onProof(isEnrolled ? { code: text } : { password: text }));
  };
  const provePasskey = async () => {
    const used = await usePasskey('second-factor/passkey-options', {});
    setProblem('problem' in used ? used.problem : await onProof({ passkey: used }));
  };
  return (
    <form class="proof panel" onSubmit={submit}>
      <ProblemNote problem={problem} />
      {isEnrolled ? (
        <label>
          A code of your authenticator application, or a recovery code
          <input name="proof" type="text" autocomplete="one-time-code" required />
        </label>
      ) : (
        <label>
          Your password
          <input name="proof" type="password" autocomplete="current-password" required />
        </label>
      )}
      <div class="buttons">
        <button type="submit" class="primary">
          {action}
        </button>
        {isEnrolled && hasPasskey && hasPasskeys ? (
          <button type="button" onClick={provePasskey}>
            Use a passkey
          </button>
        ) : null}
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}

/** The way to an authenticator application: a proof, then the secret as a QR code and as text, then a code of the application. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { TotpEnrolment as Enrolment } from '../api-types.ts';
import { base } from '../description.ts';
import { type Problem, problemOf, send } from '../send.ts';
import { ProblemNote } from './problem.tsx';
import { type Proof, ProofForm } from './proof-form.tsx';
import { QrCode } from './qr-code.tsx';
import { codesIn } from './recovery-codes.tsx';
import { CopyButton } from './value.tsx';

type EnrolTotpProps = {
  readonly isEnrolled: boolean;
  readonly hasPasskey: boolean;
  readonly onDone: (codes: readonly string[]) => Promise<void>;
  readonly onCancel: () => void;
};

export function EnrolTotp({ isEnrolled, hasPasskey, onDone, onCancel }: EnrolTotpProps): JSX.Element {
  const [begun, setBegun] = useState<Enrolment | undefined>(undefined);
  const begin = async (proof: Proof): Promise<Problem | undefined> => {
    const reply = await send('POST', `${base.value}/auth/second-factor/totp`, { json: proof });
    if (reply.status < 400) setBegun(reply.json as Enrolment);
    return problemOf(reply);
  };
  if (begun === undefined)
    return <ProofForm {...{ isEnrolled, hasPasskey, onCancel }} action="Continue" onProof={begin} />;
  return <Confirmation enrolment={begun} onDone={onDone} onCancel={onCancel} />;
}

type ConfirmationProps = Pick<EnrolTotpProps, 'onDone' | 'onCancel'> & { readonly enrolment: Enrolment };

function Confirmation({ enrolment, onDone, onCancel }: ConfirmationProps): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const confirm = async (event: Event) => {
    event.preventDefault();
    const code = String(new FormData(event.currentTarget as HTMLFormElement).get('code') ?? '').trim();
    const json = { enrolment: enrolment.enrolment, code };
    const reply = await send('POST', `${base.value}/auth/second-factor/totp/confirm`, { json });
    setProblem(problemOf(reply));
    if (reply.status >= 400) return;
    await onDone(codesIn(reply.json));
  };
  return (
    <form class="panel enrolment" onSubmit={confirm}>
      <QrCode text={enrolment.uri} label="The secret as a QR code" />
      <div>
        <p>Scan the code with an authenticator application, or type the secret:</p>
        <p class="secret">
          <code>{enrolment.secret}</code> <CopyButton text={enrolment.secret} />
        </p>
        <ProblemNote problem={problem} />
        <label>
          The code that the application shows
          <input name="code" inputMode="numeric" autocomplete="one-time-code" required />
        </label>
        <div class="buttons">
          <button type="submit" class="primary">
            Confirm
          </button>
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
        </div>
      </div>
    </form>
  );
}

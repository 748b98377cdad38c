/** The second factor of an account as administrators see it (§5.8.8), and its reset for an owner who lost the device. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { SecondFactor } from '../api-types.ts';
import { type Problem, problemOf, send } from '../send.ts';
import { ConfirmButton } from './confirm-button.tsx';
import { ProblemNote } from './problem.tsx';
import { Time } from './value.tsx';

/** @param props.account the path of the account, such as `/api/v1/users/usr_...` */
export function AccountFactor({ account }: { readonly account: string }): JSX.Element {
  const [status, setStatus] = useState<SecondFactor | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const read = async () => {
    const reply = await send('GET', `${account}/second-factor`);
    setProblem(problemOf(reply));
    if (reply.status === 200) setStatus(reply.json as SecondFactor);
  };
  useEffect(() => void read(), [account]);
  const reset = async () => {
    const refused = problemOf(await send('POST', `${account}/reset-second-factor`));
    await read();
    return refused;
  };
  return (
    <section aria-labelledby="factor-title">
      <h2 id="factor-title">Second factor</h2>
      <ProblemNote problem={problem} />
      {status === undefined ? null : <FactorStatus status={status} />}
      {status?.enrolled === true ? (
        <p>
          <ConfirmButton
            action="Reset the second factor"
            question="Remove it and end all sessions of the account?"
            onConfirm={reset}
          />
        </p>
      ) : null}
    </section>
  );
}

function FactorStatus({ status }: { readonly status: SecondFactor }): JSX.Element {
  const { required, enrolled, totp, passkeys, recoveryCodesLeft } = status;
  if (!enrolled)
    return (
      <p class={required ? 'problem' : 'quiet'}>
        {required
          ? 'The account needs a second factor and has none: it can only add one.'
          : 'The account has none, and needs none.'}
      </p>
    );
  return (
    <dl class="members">
      <div>
        <dt>Required</dt>
        <dd>{required ? 'yes' : 'no'}</dd>
      </div>
      <div>
        <dt>Authenticator application</dt>
        <dd>
          {totp === null ? (
            'none'
          ) : (
            <>
              added <Time value={totp.addedAt ?? ''} />
            </>
          )}
        </dd>
      </div>
      <div>
        <dt>Passkeys</dt>
        <dd>{passkeys}</dd>
      </div>
      <div>
        <dt>Recovery codes left</dt>
        <dd>{recoveryCodesLeft}</dd>
      </div>
    </dl>
  );
}

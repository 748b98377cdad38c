/** The invitation of an account by mail (§5.4.9), for a person who has no password and no passkey yet. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { base } from '../description.ts';
import { type Problem, problemOf, send } from '../send.ts';
import { ProblemNote } from './problem.tsx';

export function AccountInvite({ email }: { readonly email: string }): JSX.Element {
  const [isMailed, setMailed] = useState(false);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const invite = async () => {
    setMailed(false);
    const refused = problemOf(await send('POST', `${base.value}/auth/invite`, { json: { email } }));
    setProblem(refused);
    setMailed(refused === undefined);
  };
  return (
    <section aria-labelledby="invitation-title">
      <h2 id="invitation-title">Invitation</h2>
      <p class="quiet">
        A mail to {email} leads to a page where its owner sets a password or a passkey. Earlier invitations
        end.
      </p>
      <ProblemNote problem={problem} />
      <p>
        <button type="button" onClick={invite}>
          Invite by mail
        </button>{' '}
        <span role="status">{isMailed ? 'The mail is on its way.' : ''}</span>
      </p>
    </section>
  );
}

/** The person's own account: who is logged in, the password, the second factor, and the sessions. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { ProblemNote } from '../components/problem.tsx';
import { type Proof, ProofForm } from '../components/proof-form.tsx';
import { SecondFactor } from '../components/second-factor.tsx';
import { Sessions } from '../components/sessions.tsx';
import { base, hasPath, pathOf } from '../description.ts';
import { linkTo } from '../route.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { caller } from '../session.ts';

export function AccountPage(): JSX.Element {
  const me = caller.value;
  const isPerson = me?.kind === 'user' && me.authenticatedBy !== 'key';
  return (
    <section aria-labelledby="account-title">
      <header class="head">
        <h1 id="account-title">{me?.email ?? 'Your credential'}</h1>
        <p class="quiet">
          {me?.roles.length === 0 ? 'no roles' : me?.roles.join(', ')} · {me?.scopes.join(', ')}
        </p>
      </header>
      {me === undefined || me === null || !isPerson ? (
        <p class="quiet">
          You use a key, which has no password and no second factor. Log in with an account to manage them.
        </p>
      ) : (
        <>
          <h2>Second factor</h2>
          <SecondFactor />
          <Password />
          <Email />
          {hasPath(`${pathOf('users')}/{id}/sessions`) ? (
            <Sessions account={`${pathOf('users')}/${me.id}`} />
          ) : null}
          <p>
            <a href={linkTo('member', { path: pathOf('users'), id: me.id })}>Your account as a document</a>
          </p>
        </>
      )}
    </section>
  );
}

/** A code goes to the new address, and the page of the application that verifies addresses takes it (§5.4.7). */
function Email(): JSX.Element {
  const [email, setEmail] = useState('');
  const [factor, setFactor] = useState({ enrolled: false, passkeys: 0 });
  const [isSent, setSent] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const { json } = await send('GET', `${base.value}/auth/second-factor`);
    if (isObject(json)) setFactor({ enrolled: json.enrolled === true, passkeys: Number(json.passkeys) });
    setSent(false);
    setEmail(String(form.get('email')).trim());
  };
  const prove = async (proof: Proof) => {
    const problem = problemOf(
      await send('POST', `${base.value}/auth/me/email`, { json: { email, ...proof } }),
    );
    setSent(problem === undefined);
    if (problem === undefined) setEmail('');
    return problem;
  };
  return (
    <details class="step">
      <summary>Change your e-mail address</summary>
      <p role="status" class="saved">
        {isSent
          ? 'A code is on its way to the new address; your account has it once the code is confirmed.'
          : ''}
      </p>
      {email === '' ? (
        <form class="schema-form" onSubmit={submit}>
          <label class="block">
            New address
            <input name="email" type="email" autocomplete="email" required />
          </label>
          <button type="submit" class="primary">
            Continue
          </button>
        </form>
      ) : (
        <ProofForm
          action={`Change it to ${email}`}
          isEnrolled={factor.enrolled}
          hasPasskey={factor.passkeys > 0}
          onProof={prove}
          onCancel={() => setEmail('')}
        />
      )}
    </details>
  );
}

function Password(): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [isChanged, setChanged] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    const element = event.currentTarget as HTMLFormElement;
    const form = new FormData(element);
    const json = { currentPassword: String(form.get('former')), newPassword: String(form.get('next')) };
    const reply = await send('POST', `${base.value}/auth/password`, { json });
    setProblem(problemOf(reply));
    setChanged(reply.status < 400);
    if (reply.status < 400) element.reset();
  };
  return (
    <details class="step">
      <summary>Change your password</summary>
      <form class="schema-form" onSubmit={submit}>
        <ProblemNote problem={problem} />
        <p role="status" class="saved">
          {isChanged ? 'Changed. Your other sessions have ended.' : ''}
        </p>
        <label class="block">
          Password now
          <input name="former" type="password" autocomplete="current-password" required />
        </label>
        <label class="block">
          New password
          <input name="next" type="password" autocomplete="new-password" required />
        </label>
        <button type="submit" class="primary">
          Change the password
        </button>
      </form>
    </details>
  );
}

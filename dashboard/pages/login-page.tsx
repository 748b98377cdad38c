/** The way in: an account by email, password and second factor, which gets a session cookie, or a key that this tab keeps. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { ProblemNote } from '../components/problem.tsx';
import { description } from '../description.ts';
import { hasPasskeys } from '../passkeys.ts';
import type { Problem } from '../send.ts';
import { confirmLogin, type LoginStep, logIn, logInByPasskey, useKey } from '../session.ts';

/** The text of a field of the form that is submitted. */
type Field = (name: string) => string;

export function LoginPage(): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [challenge, setChallenge] = useState('');
  const submit = (use: (field: Field) => Promise<LoginStep>) => (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    return take(use((name) => String(form.get(name) ?? '')));
  };
  const take = async (step: Promise<LoginStep>) => {
    const next = await step;
    setProblem(next.problem);
    // A challenge that is used, void or too old leads back to the password; a wrong code leaves it valid.
    if (next.problem?.code === 'challenge_invalid') setChallenge('');
    else if (next.challenge !== undefined) setChallenge(next.challenge);
  };
  return (
    <main class="login" id="main">
      <h1>{description.value?.title ?? 'Comity'}</h1>
      <ProblemNote problem={problem} />
      {challenge === '' ? (
        <>
          <PasswordForm onSubmit={submit((field) => logIn(field('email'), field('password')))} />
          {hasPasskeys ? <PasskeyButton onClick={() => take(logInByPasskey())} /> : null}
          <KeyForm onSubmit={submit(async (field) => ({ problem: await useKey(field('key')) }))} />
        </>
      ) : (
        <>
          <CodeForm onSubmit={submit((field) => confirmLogin(challenge, field('code').trim()))} />
          {hasPasskeys ? <PasskeyButton onClick={() => take(logInByPasskey(challenge))} /> : null}
        </>
      )}
    </main>
  );
}

type FormProps = { readonly onSubmit: (event: Event) => void };

function PasswordForm({ onSubmit }: FormProps): JSX.Element {
  return (
    <form onSubmit={onSubmit}>
      <h2>With your account</h2>
      <label>
        Email
        <input name="email" type="email" autocomplete="username" required />
      </label>
      <label>
        Password
        <input name="password" type="password" autocomplete="current-password" required />
      </label>
      <button type="submit" class="primary">
        Log in
      </button>
    </form>
  );
}

function PasskeyButton({ onClick }: { readonly onClick: () => void }): JSX.Element {
  return (
    <p>
      <button type="button" onClick={onClick}>
        Use a passkey
      </button>
    </p>
  );
}

function CodeForm({ onSubmit }: FormProps): JSX.Element {
  return (
    <form onSubmit={onSubmit}>
      <h2>Second factor</h2>
      <label>
        Code of your authenticator application, or a recovery code
        <input name="code" autocomplete="one-time-code" required />
      </label>
      <button type="submit" class="primary">
        Continue
      </button>
    </form>
  );
}

function KeyForm({ onSubmit }: FormProps): JSX.Element {
  return (
    <form onSubmit={onSubmit}>
      <h2>With a key</h2>
      <label>
        API key
        <input name="key" type="password" autocomplete="off" required placeholder="sk_…" />
      </label>
      <p class="hint">
        The administrator key is in the terminal of the first start; with it you make the first account. Only
        this page has the key: a reload asks for it again.
      </p>
      <button type="submit">Use the key</button>
    </form>
  );
}

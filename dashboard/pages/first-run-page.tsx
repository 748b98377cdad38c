/**
 * The first run: the administrator key is the only way in, and this page makes the first account with the role of administrators. It sends
 * the requests that any client would: the account, its password, and the login (§5).
 */
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { ProblemNote } from '../components/problem.tsx';
import { description, pathOf } from '../description.ts';
import { isObject, key, type Problem, problemOf, send } from '../send.ts';
import { isFirstRun, logIn, postponeFirstRun } from '../session.ts';

export function FirstRunPage(): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  // An account whose password was refused is not made a second time.
  const made = useRef<{ readonly email: string; readonly id: string } | undefined>(undefined);
  const submit = async (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string) => String(form.get(name) ?? '').trim();
    setBusy(true);
    setProblem(await makeAdministrator(made, { email: text('email'), name: text('name') }, text('password')));
    setBusy(false);
  };
  return (
    <main class="login" id="main">
      <h1>{description.value?.title ?? 'Comity'}</h1>
      <form onSubmit={submit}>
        <h2>Make the first administrator</h2>
        <p class="hint">
          No account has the role of administrators yet. Make one now, so that the key of the terminal can
          stay in its safe place.
        </p>
        <ProblemNote problem={problem} />
        <label>
          Email
          <input name="email" type="email" autocomplete="username" required />
        </label>
        <label>
          Name
          <input name="name" autocomplete="name" />
        </label>
        <label>
          Password
          <input name="password" type="password" autocomplete="new-password" required />
        </label>
        <div class="buttons">
          <button type="submit" class="primary" disabled={isBusy}>
            Make the account and log in
          </button>
          <button type="button" onClick={postponeFirstRun}>
            Later
          </button>
        </div>
      </form>
    </main>
  );
}

type Made = { current: { readonly email: string; readonly id: string } | undefined };
type Person = { readonly email: string; readonly name: string };

async function makeAdministrator(
  made: Made,
  { email, name }: Person,
  password: string,
): Promise<Problem | undefined> {
  const users = pathOf('users');
  if (made.current?.email !== email) {
    const json = { email, ...(name === '' ? {} : { name }), roles: ['administrator'] };
    const reply = await send('POST', users, { json });
    const refused = problemOf(reply);
    if (refused !== undefined) return refused;
    made.current = { email, id: isObject(reply.json) ? String(reply.json.id) : '' };
  }
  const set = await send('POST', `${users}/${made.current.id}/password`, { json: { password } });
  const refused = problemOf(set);
  if (refused !== undefined) return refused;
  // With a key, the browser would not keep the cookie of the session.
  const kept = key.value;
  key.value = null;
  const { problem } = await logIn(email, password);
  if (problem === undefined) isFirstRun.value = false;
  else key.value = kept;
  return problem;
}

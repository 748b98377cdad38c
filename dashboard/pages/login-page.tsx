/** The way in: an account by email and password, which gets a session cookie, or a key that this tab keeps. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { ProblemNote } from '../components/problem.tsx';
import { description } from '../description.ts';
import type { Problem } from '../send.ts';
import { logIn, useKey } from '../session.ts';

export function LoginPage(): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const withForm =
    (use: (text: (name: string) => string) => Promise<Problem | undefined>) => async (event: Event) => {
      event.preventDefault();
      const form = new FormData(event.currentTarget as HTMLFormElement);
      setProblem(await use((name) => String(form.get(name) ?? '')));
    };
  return (
    <main class="login" id="main">
      <h1>{description.value?.title ?? 'Comity'}</h1>
      <ProblemNote problem={problem} />
      <form onSubmit={withForm((text) => logIn(text('email'), text('password')))}>
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
      <form onSubmit={withForm((text) => useKey(text('key')))}>
        <h2>With a key</h2>
        <label>
          API key
          <input name="key" type="password" autocomplete="off" required placeholder="sk_…" />
        </label>
        <p class="hint">
          The administrator key is in the terminal of the first start. This tab keeps the key until it is
          closed.
        </p>
        <button type="submit">Use the key</button>
      </form>
    </main>
  );
}

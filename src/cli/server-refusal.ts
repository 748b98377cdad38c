/** What an answer that is no success means to whoever gave the command: one sentence that says what to do about it. */
import { CommandFailure } from './failure.ts';

export type Credential = {
  /** Name of the variable that holds the key. */
  readonly variable: string;
  readonly key: string;
  /** What a 403 says of the key. */
  readonly forbidden: string;
};

type ProblemBody = {
  readonly error?: unknown;
  readonly errors?: readonly { readonly pointer: string; readonly message: string }[];
};

/** @param subject what the path names; undefined: nothing that could be missing */
export function refusalOf(
  api: string,
  { variable, forbidden }: Credential,
  { status }: { readonly status: number },
  text: string,
  subject?: string,
): CommandFailure {
  const { origin } = new URL(api);
  if (status === 401) return new CommandFailure(`${origin} does not accept the key in ${variable}`);
  if (status === 403) return new CommandFailure(`the key in ${variable} ${forbidden} on ${origin}`);
  if (status === 404 && subject !== undefined) return new CommandFailure(`there is no ${subject}`);
  const body = problemOf(text);
  if (body === undefined || status === 404) {
    return new CommandFailure(`${api} answered ${status}; is that a Comity server, and its base path?`);
  }
  const faults = (body.errors ?? []).map(({ pointer, message }) => `${pointer.slice(1)} ${message}`);
  return new CommandFailure([String(body.error), ...faults].join(': '));
}

function problemOf(text: string): ProblemBody | undefined {
  try {
    const body = JSON.parse(text) as ProblemBody | null;
    return typeof body?.error === 'string' ? body : undefined;
  } catch {
    // Not of this program: a proxy in between answers in HTML.
    return undefined;
  }
}

/** Who uses the dashboard: login by session cookie or key, and the caller as `GET {base}/auth/me` describes it. */
import { signal } from '@preact/signals';
import { base } from './description.ts';
import { isObject, keepKey, key, type Problem, problemOf, send } from './send.ts';

export type Caller = {
  readonly id: string;
  readonly kind: string;
  readonly email?: string;
  readonly roles: readonly string[];
  readonly scopes: readonly string[];
  readonly tenant: string | null;
  readonly authenticatedBy: string;
};

/** Undefined: not known yet; null: no caller is logged in. */
export const caller = signal<Caller | null | undefined>(undefined);

export async function findCaller(): Promise<void> {
  const reply = await send('GET', `${base.value}/auth/me`);
  caller.value = reply.status === 200 && isObject(reply.json) ? (reply.json as unknown as Caller) : null;
  if (caller.value === null && key.value !== null) keepKey(null);
}

export type LoginStep = {
  readonly problem: Problem | undefined;
  /** The password was right, and the account has a second factor: `confirmLogin` takes this with a code (§5.8.1). */
  readonly challenge?: string;
};

export function logIn(email: string, password: string): Promise<LoginStep> {
  return step('login', { email, password });
}

export function confirmLogin(challenge: string, code: string): Promise<LoginStep> {
  return step('login/second-factor', { challenge, code });
}

async function step(path: string, content: Readonly<Record<string, string>>): Promise<LoginStep> {
  const reply = await send('POST', `${base.value}/auth/${path}`, { json: { ...content, cookie: true } });
  const problem = problemOf(reply);
  if (problem === undefined) await findCaller();
  const challenge = isObject(reply.json) ? reply.json.challenge : undefined;
  return typeof challenge === 'string' ? { problem: undefined, challenge } : { problem };
}

/** @returns the problem, if the key is refused */
export async function useKey(value: string): Promise<Problem | undefined> {
  const reply = await send('GET', `${base.value}/auth/me`, { key: value });
  const problem = problemOf(reply);
  if (problem !== undefined) return problem;
  keepKey(value);
  caller.value = reply.json as Caller;
  return undefined;
}

export async function logOut(): Promise<void> {
  if (key.value === null) await send('POST', `${base.value}/auth/logout`);
  keepKey(null);
  caller.value = null;
}

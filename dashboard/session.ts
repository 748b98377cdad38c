/** Who uses the dashboard: login by session cookie, passkey or key, and the caller as `GET {base}/auth/me` describes it. */
import { signal } from '@preact/signals';
import type { Me } from './api-types.ts';
import { base, description, type Listed, pathOf } from './description.ts';
import { usePasskey } from './passkeys.ts';
import { forgetTitles } from './reference-titles.ts';
import { forgetRights } from './rights.ts';
import { isObject, key, type Problem, problemOf, type Reply, send } from './send.ts';

/** Undefined: not known yet; null: no caller is logged in. */
export const caller = signal<Me | null | undefined>(undefined);

/** The caller has the administrator key, and no account is an administrator. */
export const isFirstRun = signal(false);

/** The account has to add a second factor before it can do anything else (§5.8.7). */
export const mustEnrol = signal(false);

/** Paths of the lists that the caller may read. */
export const readable = signal<ReadonlySet<string>>(new Set());

/** Paths of the lists into which the caller may import, as far as the server was asked. */
export const importable = signal<ReadonlyMap<string, boolean>>(new Map());

/** Asks the server by a dry run of no records. */
export async function findImportable({ path, canImport }: Listed): Promise<void> {
  if (!canImport || importable.value.has(path)) return;
  const { status } = await send('POST', `${path}/import?dryRun=true`, { json: [] });
  importable.value = new Map([...importable.value, [path, status < 400]]);
}

export function isAdministrator(): boolean {
  const { kind, roles = [], scopes = [] } = caller.value ?? {};
  return kind === 'administrator' || roles.includes('administrator') || scopes.includes('admin');
}

export async function findCaller(): Promise<void> {
  await enter(await send('GET', `${base.value}/auth/me`));
  if (caller.value === null && key.value !== null) key.value = null;
}

/** Reads the rights of the caller before any view is shown, so that none shows too much. */
async function enter(reply: Reply): Promise<void> {
  forgetTitles();
  forgetRights();
  importable.value = new Map();
  const found = reply.status === 200 && isObject(reply.json) ? (reply.json as unknown as Me) : null;
  if (found !== null) {
    const [, , enrols] = await Promise.all([findReadable(), findFirstRun(found), findEnrolment(found)]);
    mustEnrol.value = enrols;
  }
  caller.value = found;
}

async function findReadable(): Promise<void> {
  const lists = description.value?.lists ?? [];
  const replies = await Promise.all(
    lists.map(async ({ path, isPaged }) => ({
      path,
      reply: await send('HEAD', isPaged ? `${path}?limit=1` : path),
    })),
  );
  readable.value = new Set(
    replies.flatMap(({ path, reply }) => (reply.status === 401 || reply.status === 403 ? [] : [path])),
  );
}

const laterName = 'comity-later';

/** This tab asks no more for the first administrator. */
export function postponeFirstRun(): void {
  sessionStorage.setItem(laterName, 'yes');
  isFirstRun.value = false;
}

const usersLooked = 100;

/** A store with more accounts than that is not at its first run. */
async function findFirstRun({ kind }: Me): Promise<void> {
  isFirstRun.value = false;
  if (kind !== 'administrator' || sessionStorage.getItem(laterName) !== null) return;
  const { json } = await send('GET', `${pathOf('users')}?limit=${usersLooked}&fields=id,roles`);
  if (!isObject(json) || !Array.isArray(json.items) || json.nextCursor !== null) return;
  const roles = json.items.flatMap((each) => (isObject(each) && Array.isArray(each.roles) ? each.roles : []));
  isFirstRun.value = !roles.includes('administrator');
}

async function findEnrolment({ kind, authenticatedBy }: Me): Promise<boolean> {
  if (kind !== 'user' || authenticatedBy === 'key') return false;
  const { json } = await send('GET', `${base.value}/auth/second-factor`);
  return isObject(json) && json.required === true && json.enrolled === false;
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

/** @param challenge of a login by password; absent: the passkey is the whole login */
export async function logInByPasskey(challenge?: string): Promise<LoginStep> {
  const used = await usePasskey('login/passkey/options', challenge === undefined ? {} : { challenge });
  return 'problem' in used ? used : step('login/passkey', used);
}

async function step(path: string, content: Readonly<Record<string, unknown>>): Promise<LoginStep> {
  const reply = await send('POST', `${base.value}/auth/${path}`, { json: { ...content, cookie: true } });
  // Who is not logged in has no page of explanations.
  const problem = problemOf({ ...reply, request: undefined });
  if (problem === undefined) await findCaller();
  const challenge = isObject(reply.json) ? reply.json.challenge : undefined;
  return typeof challenge === 'string' ? { problem: undefined, challenge } : { problem };
}

/** @returns the problem, if the key is refused */
export async function useKey(value: string): Promise<Problem | undefined> {
  const reply = await send('GET', `${base.value}/auth/me`, { key: value });
  const problem = problemOf({ ...reply, request: undefined });
  if (problem !== undefined) return problem;
  key.value = value;
  await enter(reply);
  return undefined;
}

export async function logOut(): Promise<void> {
  if (key.value === null) await send('POST', `${base.value}/auth/logout`);
  key.value = null;
  forgetTitles();
  caller.value = null;
}

/** A process of the program as far as sessions go: keys, tokens and sessions over a store, with a clock that the test moves. */
import assert from 'node:assert/strict';
import { auditTable, type User, usersTable } from '../../../src/accounts/account-tables.ts';
import type { AuditFact } from '../../../src/accounts/audit.ts';
import { createRefresh, type Refresh } from '../../../src/accounts/refresh.ts';
import { createFactorRule } from '../../../src/accounts/second-factor/factor-row.ts';
import { createSessions, type Opened, type Sessions } from '../../../src/accounts/sessions/sessions.ts';
import { type AccessTokens, createAccessTokens } from '../../../src/accounts/tokens/access-token.ts';
import { createSigningKeys, type SigningKeys } from '../../../src/accounts/tokens/signing-keys.ts';
import type { Good, Verdict } from '../../../src/accounts/verdict.ts';
import type { Settings } from '../../../src/config/settings.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { keptRow, type Store } from '../../../src/store/store.ts';
import { servicesOver } from '../../harness/services-over.ts';

export const start = Date.UTC(2030, 0, 1);
export const origin = 'https://api.example';
export const minuteMs = 60_000;
export const dayMs = 86_400_000;

export type Clock = { now: number };

export type Process = {
  readonly store: Store;
  readonly clock: Clock;
  readonly keys: SigningKeys;
  readonly tokens: AccessTokens;
  readonly sessions: Sessions;
  readonly refresh: Refresh;
  readonly facts: AuditFact[];
  readonly observed: Observation[];
  /** Opens a session and commits it. */
  login(user: User, cookie?: boolean): Promise<Opened>;
  /** Ends a session and commits that. */
  logout(session: string): Promise<void>;
};

export const settings: Partial<Settings> = {
  accessTokenSeconds: 900,
  refreshTokenSeconds: 14 * 86_400,
  // Strict: what is tolerated by default is the subject of refresh-reuse.test.ts.
  refreshReuseSeconds: 0,
  sessionIdleSeconds: 86_400,
  sessionSeconds: 30 * 86_400,
  sessionsPerAccountMax: 100,
  signingKeySeconds: 30 * 86_400,
  signingAlgorithm: 'EdDSA',
  tokenCharactersMax: 8192,
  publicUrl: origin,
};

export async function startProcess(
  store: Store,
  clock: Clock = { now: start },
  given: Partial<Settings> = {},
): Promise<Process> {
  const facts: AuditFact[] = [];
  const observed: Observation[] = [];
  const services = servicesOver(store, {
    clock: () => clock.now,
    observe: (fact) => void observed.push(fact),
    settings: { ...settings, ...given },
  });
  const audit = {
    entry(fact: AuditFact) {
      facts.push(fact);
      const next = keptRow(JSON.stringify(fact), null, clock.now, clock.now);
      return { table: auditTable, id: `aud_${services.newId()}`, expect: { absent: true } as const, next };
    },
  };
  const keys = await createSigningKeys(services, audit);
  const tokens = createAccessTokens(services, keys);
  const sessions = createSessions(services, tokens, createFactorRule(store, 'optional'));
  return {
    store,
    clock,
    keys,
    tokens,
    sessions,
    refresh: createRefresh({ ...services, tokens, audit }),
    facts,
    observed,
    async login(user, cookie = false) {
      const opened = await sessions.open(user, { cookie, at: clock.now });
      const commit = await store.commit({ changes: opened.changes, events: [] });
      assert.equal(commit.outcome, 'committed');
      return opened;
    },
    async logout(session) {
      const commit = await store.commit({ changes: await sessions.end(session), events: [] });
      assert.equal(commit.outcome, 'committed');
    },
  };
}

/** Writes the account, new or changed. */
export async function putUser(store: Store, given: Partial<User> & { readonly id: string }): Promise<User> {
  const user: User = {
    email: `${given.id}@shop.example`,
    emailVerified: true,
    roles: [],
    scopes: ['read', 'write'],
    disabled: false,
    createdAt: new Date(start).toISOString(),
    updatedAt: new Date(start).toISOString(),
    ...given,
  };
  const row = await store.read(usersTable, user.id);
  const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
  const next = keptRow(JSON.stringify(user), user.id, start, start);
  const commit = await store.commit({
    changes: [{ table: usersTable, id: user.id, expect, next }],
    events: [],
  });
  assert.equal(commit.outcome, 'committed');
  return user;
}

export async function removeUser(store: Store, id: string): Promise<void> {
  const row = await store.read(usersTable, id);
  assert.ok(row);
  await store.commit({
    changes: [{ table: usersTable, id, expect: { rev: row.rev }, next: null }],
    events: [],
  });
}

/** The verdict, which must be good. */
export async function good(verdict: Verdict | Promise<Verdict>): Promise<Good> {
  const found = await verdict;
  assert.ok('principal' in found, 'the credential should be good');
  return found;
}

/** That the credential is refused, and how. */
export async function refused(verdict: Verdict | Promise<Verdict>): Promise<void> {
  assert.deepEqual(await verdict, { problem: 'invalid_token' });
}

/** The value of the cookie that the fields set. */
export function cookieOf(fields: readonly string[]): string {
  const value = fields[1] ?? '';
  return value.slice(value.indexOf('=') + 1, value.indexOf(';'));
}

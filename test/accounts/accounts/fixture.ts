/** A process of the program as far as accounts go, over a store: real hashes of little cost, real sessions, and mails that a test reads. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { type AccountMail, createAccountMail } from '../../../src/accounts/account-mail.ts';
import type { AccountParts } from '../../../src/accounts/account-parts.ts';
import { auditTable, type User } from '../../../src/accounts/account-tables.ts';
import { createAttemptLimit, loginRule } from '../../../src/accounts/attempt-limit.ts';
import type { AuditFact } from '../../../src/accounts/audit.ts';
import { createLogin, type Login } from '../../../src/accounts/login.ts';
import { createMailTexts } from '../../../src/accounts/mail-texts.ts';
import { type CheckPassword, createCheckPassword } from '../../../src/accounts/passwords/check-password.ts';
import { createPasswordHasher, type PasswordHasher } from '../../../src/accounts/passwords/hasher.ts';
import {
  type ChangePassword,
  createChangePassword,
  createResetPassword,
  type ResetPassword,
} from '../../../src/accounts/passwords/set-password.ts';
import { createRegister, type Register, type Registered } from '../../../src/accounts/register.ts';
import { createChallengeTokens } from '../../../src/accounts/second-factor/challenge-tokens.ts';
import { createFactorRule } from '../../../src/accounts/second-factor/factor-row.ts';
import type { Opened, Sessions } from '../../../src/accounts/sessions/sessions.ts';
import { createVerifyEmail, type VerifyEmail } from '../../../src/accounts/verify-email.ts';
import type { Settings } from '../../../src/config/settings.ts';
import type { Letter, MailPort } from '../../../src/mail/keep-mail.ts';
import { mailsCollection } from '../../../src/mail/mail-tables.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import type { Services } from '../../../src/store/capabilities.ts';
import { keptRow, type Store } from '../../../src/store/store.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { noAsk, partsOver } from '../fixtures/plain-accounts.ts';
import { type Clock, type Process, start, startProcess } from '../sessions/fixture.ts';

export const address = '192.0.2.1';
/** Without a hook of an application, nothing of the request is read. */
export const how = { cookie: false, address, ask: noAsk };

export type Given = {
  readonly clock?: Clock;
  readonly verifiedEmailRequired?: boolean;
  readonly mailConfigured?: boolean;
  readonly passwordPasses?: number;
  readonly loginAttempts?: number;
};

export type Accounts = {
  readonly parts: AccountParts;
  readonly store: Store;
  readonly clock: Clock;
  readonly process: Process;
  readonly checkPassword: CheckPassword;
  readonly register: Register;
  readonly login: Login;
  readonly changePassword: ChangePassword;
  readonly resetPassword: ResetPassword;
  readonly verifyEmail: VerifyEmail;
  readonly mail: AccountMail;
  readonly sessions: Sessions;
  /** Facts that committed with a unit, or were to. */
  readonly entries: AuditFact[];
  readonly notes: AuditFact[];
  /** Those that were committed. */
  readonly mails: Letter[];
  readonly observed: Observation[];
  /** Runs of argon2id so far. */
  hashes(): number;
};

const settings: Partial<Settings> = {
  passwordCharactersMin: 8,
  passwordBytesMax: 256,
  passwordMemoryKibibytes: 64,
  passwordHashesWaitingMax: 100,
  loginWindowSeconds: 900,
  verificationCodeSeconds: 86_400,
  resetCodeSeconds: 3600,
  mailsWaitingMax: 100,
  mailResetUrl: 'https://shop.example/reset#{code}',
};

export async function startAccounts(
  context: TestContext,
  store: Store,
  given: Given = {},
): Promise<Accounts> {
  const { clock = { now: start }, verifiedEmailRequired = false } = given;
  const process = await startProcess(store, clock);
  const mails: Letter[] = [];
  const observed: Observation[] = [];
  const services = servicesOver(noting(store, mails), {
    clock: () => clock.now,
    observe: (fact) => void observed.push(fact),
    settings: {
      ...settings,
      verifiedEmailRequired,
      loginAttempts: given.loginAttempts ?? 5,
      passwordPasses: given.passwordPasses ?? 1,
    },
  });
  const { audit, entries, notes } = listeningAudit(clock, services.newId);
  const { hasher, hashes } = countingHasher(context, services);
  const { sessions, tokens } = process;
  const limit = createAttemptLimit(services, loginRule(services.settings));
  const application = { templates: new Map(), title: 'Shop' };
  const port = given.mailConfigured === false ? undefined : portOf(clock, services.newId);
  const factorRule = createFactorRule(store, 'optional');
  const parts = partsOver(services, {
    ...{ audit, hasher, limit, sessions, tokens, factorRule },
    checkPassword: createCheckPassword(services, hasher, limit, audit),
    challenges: createChallengeTokens(services, 'a secret of the processes'),
    mail: createAccountMail(services, audit, port, createMailTexts(application, services.settings)),
  });
  return {
    parts,
    store,
    clock,
    process,
    register: createRegister(parts),
    login: createLogin(parts),
    changePassword: createChangePassword(parts),
    resetPassword: createResetPassword(parts),
    verifyEmail: createVerifyEmail(parts),
    checkPassword: parts.checkPassword,
    mail: parts.mail,
    sessions,
    entries,
    notes,
    mails,
    observed,
    hashes,
  };
}

/** Keeps each mail as one row, which `noting` recognizes. */
function portOf(clock: Clock, newId: () => string): Pick<MailPort, 'keep'> {
  return {
    keep(letter) {
      const next = keptRow(JSON.stringify(letter), null, clock.now, clock.now);
      return [{ table: mailsCollection.name, id: `mail_${newId()}`, expect: { absent: true }, next }];
    },
  };
}

/** The store, which notes the mails of units that it committed. */
function noting(store: Store, mails: Letter[]): Store {
  return {
    ...store,
    async commit(unit) {
      const commit = await store.commit(unit);
      if (commit.outcome !== 'committed') return commit;
      for (const { table, next } of unit.changes) {
        if (table === mailsCollection.name && next !== null) mails.push(JSON.parse(next.doc) as Letter);
      }
      return commit;
    },
  };
}

function listeningAudit(clock: Clock, newId: () => string) {
  const entries: AuditFact[] = [];
  const notes: AuditFact[] = [];
  const audit = {
    entry(fact: AuditFact) {
      entries.push(fact);
      const next = keptRow(JSON.stringify(fact), null, clock.now, clock.now);
      return { table: auditTable, id: `aud_${newId()}`, expect: { absent: true } as const, next };
    },
    note: (fact: AuditFact) => void notes.push(fact),
  };
  return { audit, entries, notes };
}

function countingHasher(
  context: TestContext,
  services: Services,
): { hasher: PasswordHasher; hashes(): number } {
  let count = 0;
  const hasher = createPasswordHasher({ ...services, observe: () => undefined }, 2);
  context.after(() => hasher.close());
  return {
    hashes: () => count,
    hasher: {
      ...hasher,
      hash: (password) => {
        count += 1;
        return hasher.hash(password);
      },
      verify: (password, hash) => {
        count += 1;
        return hasher.verify(password, hash);
      },
    },
  };
}

export const ada = { email: 'Ada@shop.example', password: 'correct horse' };

/** Registers an account and takes what was opened for it. */
export async function join(accounts: Accounts, registration = ada): Promise<{ user: User; opened: Opened }> {
  const { user, opened } = registered(await accounts.register(registration, how));
  assert.ok(opened !== null);
  return { user, opened };
}

export function registered(outcome: Registered): Extract<Registered, { ok: true }> {
  if (!outcome.ok) throw new assert.AssertionError({ message: `not registered: ${outcome.problem}` });
  return outcome;
}

/** The code in the last mail. */
export function codeOf(accounts: Accounts): string {
  const [code] = /[A-Za-z0-9_-]{43}/.exec(accounts.mails.at(-1)?.text ?? '') ?? [];
  assert.ok(code !== undefined, 'a mail with a code');
  return code;
}

/** Asks for a mail and waits until the wish has been dealt with. */
export async function wish(
  accounts: Accounts,
  purpose: 'verification' | 'reset',
  email: string,
): Promise<void> {
  accounts.mail.request({ purpose, for: { email }, address });
  await accounts.mail.settled();
}

/**
 * Checks an address and a password, for logins, Basic and password changes (§5.2, §8): counts the attempt against the login limit,
 * finds the account, hashes. An unknown address, a disabled account, one without a password and a wrong password get the same response
 * after the same work: the same reads and one hash. The audit trail records failed attempts with the account, if it exists, and never
 * with the typed text.
 */
import type { Allowance } from '../../http/message.ts';
import { normalizeEmail } from '../../mail/email.ts';
import type { Services } from '../../store/capabilities.ts';
import {
  digestOf,
  passwordsTable,
  readPassword,
  type StoredPassword,
  usersTable,
} from '../account-tables.ts';
import type { AttemptLimit } from '../attempt-limit.ts';
import { type Audit, type From, originOf } from '../audit.ts';
import { type FactorRule, readFactor } from '../second-factor/factor-row.ts';
import { absentUserId, createFindUser, type FoundUser, principalOf } from '../users/user-row.ts';
import type { Verdict } from '../verdict.ts';
import type { PasswordHasher } from './hasher.ts';

export type PasswordUse = 'login' | 'basic' | 'change';

export type Checked =
  | {
      readonly ok: true;
      readonly found: FoundUser;
      readonly password: StoredPassword & { readonly hash: string };
    }
  /** `allowance`: the login limit refused the attempt before any comparison. */
  | { readonly ok: false; readonly allowance?: Allowance };

/** @param email as typed @throws StoreUnavailable also if the hashing queue is full */
export type CheckPassword = (
  email: string,
  password: string,
  from: From,
  use?: PasswordUse,
) => Promise<Checked>;

export function createCheckPassword(
  { store, observe }: Services,
  hasher: Pick<PasswordHasher, 'verify'>,
  limit: AttemptLimit,
  audit: Pick<Audit, 'note'>,
): CheckPassword {
  const findUser = createFindUser(store);

  async function judge(email: string | undefined, password: string): Promise<Judged> {
    const found = email === undefined ? undefined : await findUser.byEmail(email);
    const stored = await readPassword(store, found?.user.id ?? absentUserId);
    const usable = found === undefined || found.user.disabled ? null : (stored?.hash ?? null);
    const matches = await hasher.verify(password, usable);
    if (!matches || found === undefined || stored === undefined || usable === null) {
      return { ok: false, subject: found?.user.id ?? null };
    }
    return { ok: true, found, password: { ...stored, hash: usable } };
  }

  return async (typed, password, from, use = 'login') => {
    const email = normalizeEmail(typed);
    // The counters hold a digest, and so no addresses and no typed text.
    const attempt = await limit.begin(digestOf(email ?? typed), from.address);
    if (!attempt.ok) {
      observe({ kind: 'login-judged', outcome: 'limited' });
      if (attempt.first) {
        const fact = { type: 'login.limited', actor: null, subject: null } as const;
        audit.note({ ...fact, ...originOf(from), detail: { use } });
      }
      return { ok: false, allowance: attempt.allowance };
    }
    let judged: Judged | undefined;
    try {
      judged = await judge(email, password);
    } finally {
      // An attempt without a comparison is not a failed one.
      if (judged?.ok === false) attempt.failed();
      else await attempt.succeeded();
    }
    observe({ kind: 'login-judged', outcome: judged.ok ? 'succeeded' : 'failed' });
    if (judged.ok) return judged;
    const fact = { type: 'login.failed', actor: null, subject: judged.subject } as const;
    audit.note({ ...fact, ...originOf(from), detail: { use } });
    return { ok: false };
  };
}

type Judged = Extract<Checked, { ok: true }> | { readonly ok: false; readonly subject: string | null };

type PasswordVerifier = (user: string, password: string, from: From) => Promise<Verdict>;

/**
 * Verifies Basic credentials of an account (RFC 7617). The verdict rests on the account and on its password row, so that a change of
 * either ends it.
 */
export function createPasswordVerifier(
  { store, settings }: Services,
  checkPassword: CheckPassword,
  factorRule: FactorRule,
): PasswordVerifier {
  return async (typed, password, from) => {
    const checked = await checkPassword(typed, password, from, 'basic');
    if (!checked.ok) {
      return checked.allowance === undefined
        ? { problem: 'invalid_credentials' }
        : { problem: 'rate_limited', allowance: checked.allowance };
    }
    const { user, row } = checked.found;
    // Basic is a login at every request.
    if (settings.verifiedEmailRequired && !user.emailVerified) return { problem: 'email_unverified' };
    const principal = principalOf(user);
    if (principal === undefined) return { problem: 'invalid_credentials' };
    // Basic has no place for a code. Adding a factor rewrites the row of the password, on which the verdict rests.
    if ((await readFactor(store, user.id)) !== undefined) return { problem: 'second_factor_required' };
    return factorRule(user, {
      principal,
      scheme: 'password',
      session: null,
      key: null,
      expiresAt: Number.POSITIVE_INFINITY,
      basis: [
        { table: usersTable, id: user.id, rev: row.rev },
        { table: passwordsTable, id: user.id, rev: checked.password.row.rev },
      ],
    });
  };
}

/**
 * An address and a password to an account, the same for a login, for Basic and for a change of password (§5.2, §8): counted against the
 * login limit first, then found, then hashed. An unknown address, a disabled account, one without a password and a wrong password are the
 * same answer after the same work: the same reads and one hash.
 *
 * Failed attempts go into the audit trail with the account, where there is one, and never with what was typed.
 */
import { hash } from 'node:crypto';
import type { Allowance } from '../../http/allowance.ts';
import type { Observe } from '../../observe/observation.ts';
import type { Store } from '../../store/store.ts';
import type { Audit } from '../audit-fact.ts';
import { normalizeEmail } from '../email.ts';
import type { LoginLimit } from '../login-limit.ts';
import type { PasswordHasher } from '../passwords/hasher.ts';
import { type FindUser, type FoundUser, nobodyId } from './find-user.ts';
import { readPassword, type StoredPassword } from './password-row.ts';

/** What asks: for the audit trail. */
export type PasswordUse = 'login' | 'basic' | 'change';

export type Checked =
  | {
      readonly ok: true;
      readonly found: FoundUser;
      /** As it stood when the password was compared with it. */
      readonly password: StoredPassword & { readonly hash: string };
    }
  /** `allowance`: too many failed before, and nothing was compared. */
  | { readonly ok: false; readonly allowance?: Allowance };

/**
 * @param email as it was typed
 * @param address as limits count it
 * @throws StoreUnavailable also where too many passwords wait to be hashed
 */
export type CheckPassword = (
  email: string,
  password: string,
  address: string,
  use?: PasswordUse,
) => Promise<Checked>;

export type CheckPasswordOptions = {
  readonly store: Pick<Store, 'read'>;
  readonly findUser: FindUser;
  readonly hasher: Pick<PasswordHasher, 'verify'>;
  readonly limit: LoginLimit;
  readonly audit: Pick<Audit, 'note'>;
  readonly observe: Observe;
};

export function createCheckPassword(options: CheckPasswordOptions): CheckPassword {
  const { store, findUser, hasher, limit, audit, observe } = options;

  async function judge(email: string | undefined, password: string): Promise<Judged> {
    const found = email === undefined ? undefined : await findUser.byEmail(email);
    const stored = await readPassword(store, found?.user.id ?? nobodyId);
    const usable = found === undefined || found.user.disabled ? null : (stored?.hash ?? null);
    const matches = await hasher.verify(password, usable);
    if (!matches || found === undefined || stored === undefined || usable === null) {
      return { ok: false, subject: found?.user.id ?? null };
    }
    return { ok: true, found, password: { ...stored, hash: usable } };
  }

  return async (typed, password, address, use = 'login') => {
    const email = normalizeEmail(typed);
    const attempt = await limit.begin(accountKey(email ?? typed), address);
    if (!attempt.ok) {
      observe({ kind: 'login-judged', outcome: 'limited' });
      if (attempt.first) {
        audit.note({ type: 'login.limited', actor: null, subject: null, address, detail: { use } });
      }
      return { ok: false, allowance: attempt.allowance };
    }
    let judged: Judged | undefined;
    try {
      judged = await judge(email, password);
    } finally {
      // What was never compared is no failure of whoever asked.
      if (judged?.ok === false) attempt.failed();
      else await attempt.succeeded();
    }
    observe({ kind: 'login-judged', outcome: judged.ok ? 'succeeded' : 'failed' });
    if (judged.ok) return judged;
    audit.note({ type: 'login.failed', actor: null, subject: judged.subject, address, detail: { use } });
    return { ok: false };
  };
}

type Judged = Extract<Checked, { ok: true }> | { readonly ok: false; readonly subject: string | null };

/** What failed attempts are counted by: the counters hold no addresses, and nothing that was typed. */
function accountKey(email: string): string {
  return hash('sha256', email, 'base64url');
}

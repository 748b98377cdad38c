/**
 * A new password by the one that holds (§5.4). All other sessions of the account end in the same unit, and codes that would set a password
 * are void. Wrong ones count as failed logins: a session left open is no way to guess the password.
 */
import type { Allowance } from '../../http/allowance.ts';
import type { Store } from '../../store/store.ts';
import type { Audit } from '../audit-fact.ts';
import type { PasswordHasher } from '../passwords/hasher.ts';
import { newPasswordFault, type PasswordBounds } from '../passwords/new-password.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { passwordsTable } from '../tables.ts';
import type { CheckPassword } from './check-password.ts';
import { commitRetried } from './commit-retried.ts';
import type { FindUser } from './find-user.ts';
import { removeCodes } from './mail-code.ts';
import { passwordChange, readPassword } from './password-row.ts';

export type ChangePasswordOptions = PasswordBounds & {
  readonly store: Store;
  readonly findUser: FindUser;
  readonly checkPassword: CheckPassword;
  readonly hasher: Pick<PasswordHasher, 'hash' | 'verify'>;
  readonly sessions: Pick<Sessions, 'endOfUser'>;
  readonly audit: Pick<Audit, 'entry'>;
  readonly clock: () => number;
};

export type Changed =
  | { readonly ok: true }
  | {
      readonly ok: false;
      readonly problem: 'invalid_credentials' | 'rate_limited' | 'unavailable';
      readonly allowance?: Allowance;
    }
  | { readonly ok: false; readonly problem: 'validation_failed'; readonly fault: string };

/**
 * @param who.session the session that goes on; null: none does
 * @param who.address as limits count it
 * @throws StoreUnavailable
 */
export type ChangePassword = (
  who: { readonly userId: string; readonly session: string | null; readonly address: string },
  currentPassword: string,
  newPassword: string,
) => Promise<Changed>;

export function createChangePassword(options: ChangePasswordOptions): ChangePassword {
  const { store, findUser, checkPassword, hasher, sessions, audit, clock } = options;
  return async (who, currentPassword, newPassword) => {
    const fault = newPasswordFault(newPassword, options);
    if (fault !== undefined) return { ok: false, problem: 'validation_failed', fault };
    const { userId, address } = who;
    const asker = await findUser.byId(userId);
    if (asker === undefined) return wrong;
    const checked = await checkPassword(asker.user.email, currentPassword, address, 'change');
    if (!checked.ok) {
      if (checked.allowance === undefined) return wrong;
      return { ok: false, problem: 'rate_limited', allowance: checked.allowance };
    }
    // Between the two the address may have gone to another account.
    if (checked.found.user.id !== userId) return wrong;
    const hash = await hasher.hash(newPassword);
    let compared = checked.password.hash;
    const attempt = async () => {
      const standing = await readPassword(store, userId);
      if (standing === undefined || standing.hash === null) return { refused: wrong };
      // Another change came first, or a login that renewed the hash of the same password.
      if (standing.hash !== compared && !(await hasher.verify(currentPassword, standing.hash))) {
        return { refused: wrong };
      }
      compared = standing.hash;
      const at = clock();
      const changes = [
        passwordChange(userId, standing, hash, at),
        ...(await sessions.endOfUser(userId, who.session)),
        ...(await removeCodes(store, userId, 'reset', null)),
        audit.entry({ type: 'password.changed', actor: userId, subject: userId, address }),
      ];
      return { changes, result: { ok: true } as const };
    };
    const row = { table: passwordsTable, id: userId };
    return commitRetried<Changed>(store, row, attempt, () => unavailable);
  };
}

const wrong: Changed = { ok: false, problem: 'invalid_credentials' };
const unavailable: Changed = { ok: false, problem: 'unavailable' };

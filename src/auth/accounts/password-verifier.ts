/**
 * Basic credentials of an account (RFC 7617): its address and its password. The verdict rests on the account and on the row of its
 * password, so that a change of either ends it.
 */
import { principalOf } from '../sessions/user-principal.ts';
import { passwordsTable, usersTable } from '../tables.ts';
import type { Verdict } from '../verdict.ts';
import type { CheckPassword } from './check-password.ts';

export type PasswordVerifier = (user: string, password: string, address: string) => Promise<Verdict>;

/** @param verifiedEmailRequired as for a login: Basic is one, at every request */
export function createPasswordVerifier(options: {
  readonly checkPassword: CheckPassword;
  readonly verifiedEmailRequired: boolean;
}): PasswordVerifier {
  const { checkPassword, verifiedEmailRequired } = options;
  return async (typed, password, address) => {
    const checked = await checkPassword(typed, password, address, 'basic');
    if (!checked.ok) {
      return checked.allowance === undefined
        ? { problem: 'invalid_credentials' }
        : { problem: 'rate_limited', allowance: checked.allowance };
    }
    const { user, row } = checked.found;
    if (verifiedEmailRequired && !user.emailVerified) return { problem: 'email_unverified' };
    const principal = principalOf(user);
    if (principal === undefined) return { problem: 'invalid_credentials' };
    return {
      principal,
      scheme: 'password',
      session: null,
      key: null,
      expiresAt: Number.POSITIVE_INFINITY,
      basis: [
        { table: usersTable, id: user.id, rev: row.rev },
        { table: passwordsTable, id: user.id, rev: checked.password.row.rev },
      ],
    };
  };
}

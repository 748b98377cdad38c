/**
 * Which accounts need a second factor (`COMITY_SECOND_FACTOR`, §5.8), as the verifiers of credentials see it. The credentials of an
 * account that needs one and has none open only the routes that add it.
 */
import { administratorRole } from '../../model/principal.ts';
import { type MaybePromise, type Store, whenKnown } from '../../store/store.ts';
import { passwordsTable, type User } from '../account-tables.ts';
import { readPassword } from '../passwords/password-row.ts';
import type { Good } from '../verdict.ts';
import { readFactor, secondFactorsTable } from './factor-row.ts';

export type SecondFactorMode = 'optional' | 'administrators' | 'required';

/** Adds what the rule says to the verdict on a credential of the account. */
export type FactorRule = (user: User, verdict: Good) => MaybePromise<Good>;

export function needsFactor(mode: SecondFactorMode, user: Pick<User, 'roles' | 'scopes'>): boolean {
  if (mode === 'optional') return false;
  return mode === 'required' || user.roles.includes(administratorRole) || user.scopes.includes('admin');
}

/**
 * A verdict on a limited credential rests on the row of the password besides, which every change of a factor rewrites: an absent row has
 * no revision to rest on.
 */
export function createFactorRule(store: Pick<Store, 'read'>, mode: SecondFactorMode): FactorRule {
  if (mode === 'optional') return (_user, verdict) => verdict;

  function limited(user: User, verdict: Good): MaybePromise<Good> {
    return whenKnown(readPassword(store, user.id), (password) => {
      const row = password?.row;
      const basis = row === undefined ? [] : [{ table: passwordsTable, id: user.id, rev: row.rev }];
      // Without that row nothing shows a new factor, so the verdict is not reused.
      const expiresAt = row === undefined ? 0 : verdict.expiresAt;
      return { ...verdict, enrolsOnly: true, expiresAt, basis: [...verdict.basis, ...basis] };
    });
  }

  return (user, verdict) => {
    if (!needsFactor(mode, user)) return verdict;
    return whenKnown(readFactor(store, user.id), (stored) => {
      if (stored === undefined) return limited(user, verdict);
      const rest = { table: secondFactorsTable, id: user.id, rev: stored.row.rev };
      return { ...verdict, basis: [...verdict.basis, rest] };
    });
  };
}

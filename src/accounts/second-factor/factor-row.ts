/**
 * The row of an account's second factor (§5.8): its TOTP secret, its passkeys and the digests of its recovery codes, in one row, so that
 * one compare-and-swap decides which of two requests used a code. An account without a factor has no row. The table is sealed
 * (store-tables.ts), because the TOTP secret must be used again. The last part is the rule that says which accounts need a factor.
 */
import { administratorRole } from '../../model/principal.ts';
import {
  type Change,
  keptRow,
  type MaybePromise,
  type Row,
  type Store,
  whenKnown,
} from '../../store/store.ts';
import { passwordsTable, readPassword, type User } from '../account-tables.ts';
import type { Good } from '../verdict.ts';

/** By user id; `owner` is the user. */
export const secondFactorsTable = 'second_factors';

export type Totp = {
  /** Base32 (RFC 4648 §6). */
  readonly secret: string;
  /** The latest accepted time step; only later ones are accepted (RFC 6238 §5.2). */
  readonly lastStep: number;
  /** ISO 8601. */
  readonly addedAt: string;
};

export type Passkey = {
  readonly id: string;
  /** Chosen by the owner. */
  readonly name: string;
  /** The credential id of the authenticator, in base64url. */
  readonly credential: string;
  /** A COSE key (RFC 9052 §7) in base64url. */
  readonly publicKey: string;
  /** The sign counter of the last use; 0 for an authenticator without one. */
  readonly counter: number;
  readonly transports: readonly string[];
  readonly backedUp: boolean;
  /** ISO 8601, like `lastUsedAt`. */
  readonly createdAt: string;
  readonly lastUsedAt: string | null;
};

export type SecondFactor = {
  readonly totp: Totp | null;
  readonly passkeys: readonly Passkey[];
  /** Digests of the codes that are left (factor-codes.ts). */
  readonly recoveryCodes: readonly string[];
};

export type StoredFactor = { readonly factor: SecondFactor; readonly row: Row };

export const noFactor: SecondFactor = { totp: null, passkeys: [], recoveryCodes: [] };

export function readFactor(
  store: Pick<Store, 'read'>,
  userId: string,
): MaybePromise<StoredFactor | undefined> {
  return whenKnown(store.read(secondFactorsTable, userId), (row) =>
    row === undefined ? undefined : { factor: JSON.parse(row.doc) as SecondFactor, row },
  );
}

/** Returns the change to the new factor; the row is removed with the last factor, and its recovery codes with it. */
export function factorChange(
  userId: string,
  before: StoredFactor | undefined,
  next: SecondFactor,
  at: number,
): readonly Change[] {
  const expect = before === undefined ? ({ absent: true } as const) : { rev: before.row.rev };
  const place = { table: secondFactorsTable, id: userId, expect };
  if (!isFactor(next)) return before === undefined ? [] : [{ ...place, next: null }];
  return [{ ...place, next: keptRow(JSON.stringify(next), userId, before?.row.createdAt ?? at, at) }];
}

/** Recovery codes alone are not a factor. */
export function isFactor({ totp, passkeys }: SecondFactor): boolean {
  return totp !== null || passkeys.length > 0;
}

// Which accounts need a second factor (`COMITY_SECOND_FACTOR` and `accounts.secondFactor`, §5.8), as the verifiers of credentials see it. The credentials of an
// account that needs one and has none open only the routes that add it.

const noRoles: ReadonlySet<string> = new Set();

type SecondFactorMode = 'optional' | 'administrators' | 'required';

/** Adds what the rule says to the verdict on a credential of the account. */
export type FactorRule = (user: User, verdict: Good) => MaybePromise<Good>;

/** @param required the roles whose accounts need a factor, whatever the mode */
export function needsFactor(
  mode: SecondFactorMode,
  required: ReadonlySet<string>,
  user: Pick<User, 'roles' | 'scopes'>,
): boolean {
  if (user.roles.some((role) => required.has(role))) return true;
  if (mode === 'optional') return false;
  return mode === 'required' || user.roles.includes(administratorRole) || user.scopes.includes('admin');
}

/**
 * A verdict on a limited credential rests on the row of the password besides, which every change of a factor rewrites: an absent row has
 * no revision to rest on.
 */
export function createFactorRule(
  store: Pick<Store, 'read'>,
  mode: SecondFactorMode,
  required: ReadonlySet<string> = noRoles,
): FactorRule {
  if (mode === 'optional' && required.size === 0) return (_user, verdict) => verdict;

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
    if (!needsFactor(mode, required, user)) return verdict;
    return whenKnown(readFactor(store, user.id), (stored) => {
      if (stored === undefined) return limited(user, verdict);
      const rest = { table: secondFactorsTable, id: user.id, rev: stored.row.rev };
      return { ...verdict, basis: [...verdict.basis, rest] };
    });
  };
}

/**
 * A new password by the code of a mail (§5.4): in one unit the password is set, the code and its siblings are used up, every session of the
 * account ends, and the address, to which the code went, is verified.
 *
 * Until somebody verified the address, anybody may have registered it and made keys, waiting for its owner to come. So the keys of such
 * an account go too; those of one whose address was verified before are its owner's, who can revoke them.
 */
import type { Change, Store } from '../../store/store.ts';
import type { Audit } from '../audit-fact.ts';
import { createKeysOfOwner, type KeysOfOwner } from '../keys/keys-of-owner.ts';
import type { PasswordHasher } from '../passwords/hasher.ts';
import { newPasswordFault, type PasswordBounds } from '../passwords/new-password.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { passwordsTable, usersTable } from '../tables.ts';
import { commitRetried } from './commit-retried.ts';
import type { FindUser, FoundUser } from './find-user.ts';
import { type FoundCode, findCode, removeCodes } from './mail-code.ts';
import { passwordChange, readPassword } from './password-row.ts';
import { userRow } from './user-row.ts';

export type ResetPasswordOptions = PasswordBounds & {
  readonly store: Store;
  readonly findUser: FindUser;
  readonly hasher: Pick<PasswordHasher, 'hash'>;
  readonly sessions: Pick<Sessions, 'endOfUser'>;
  readonly audit: Pick<Audit, 'entry'>;
  readonly clock: () => number;
};

export type Reset =
  | { readonly ok: true }
  | { readonly ok: false; readonly problem: 'code_invalid' | 'unavailable' }
  /** The code is still good. */
  | { readonly ok: false; readonly problem: 'validation_failed'; readonly fault: string };

/** @param address where the request came from @throws StoreUnavailable */
export type ResetPassword = (code: string, password: string, address: string) => Promise<Reset>;

export function createResetPassword(options: ResetPasswordOptions): ResetPassword {
  const { store, findUser, hasher, clock } = options;

  async function look(code: string, at: number): Promise<{ found: FoundCode; owner: FoundUser } | undefined> {
    const found = await findCode(store, code, 'reset', at);
    const owner = found === undefined ? undefined : await findUser.byId(found.userId);
    if (found === undefined || owner === undefined) return undefined;
    return owner.user.disabled || owner.user.email !== found.email ? undefined : { found, owner };
  }

  return async (code, password, address) => {
    const fault = newPasswordFault(password, options);
    if (fault !== undefined) return { ok: false, problem: 'validation_failed', fault };
    // A hash is spent only on a code that is good.
    const first = await look(code, clock());
    if (first === undefined) return { ok: false, problem: 'code_invalid' };
    const hash = await hasher.hash(password);
    /** The account, where its address is verified by this alone. */
    let claimed: string | undefined;
    const attempt = async () => {
      const at = clock();
      const good = await look(code, at);
      if (good === undefined) return invalid;
      claimed = good.owner.user.emailVerified ? undefined : good.owner.user.id;
      const changes = await changesOf(options, { ...good, hash, at, address });
      return { changes, result: { ok: true } as const };
    };
    const row = { table: passwordsTable, id: first.owner.user.id };
    const done = await commitRetried<Reset>(store, row, attempt, () => unavailable);
    if (claimed !== undefined && done.ok) await keysOf(options, claimed, address).clear(claimed);
    return done;
  };
}

const invalid = { refused: { ok: false, problem: 'code_invalid' } } as const;
const unavailable: Reset = { ok: false, problem: 'unavailable' };

type Good = {
  readonly found: FoundCode;
  readonly owner: FoundUser;
  readonly hash: string;
  readonly at: number;
  readonly address: string;
};

function keysOf({ store, audit }: ResetPasswordOptions, user: string, address: string): KeysOfOwner {
  return createKeysOfOwner(store, (key) =>
    audit.entry({
      type: 'key.revoked',
      actor: user,
      subject: key,
      address,
      detail: { reason: 'password.reset' },
    }),
  );
}

async function changesOf(options: ResetPasswordOptions, good: Good): Promise<readonly Change[]> {
  const { store, sessions, audit } = options;
  const { found, owner, hash, at, address } = good;
  const { user, row } = owner;
  const standing = await readPassword(store, user.id);
  const fact = { actor: user.id, subject: user.id, address };
  const changes = [
    found.removal,
    ...(await removeCodes(store, user.id, 'reset', found.removal.id)),
    passwordChange(user.id, standing, hash, at),
    ...(await sessions.endOfUser(user.id, null)),
    audit.entry({ type: 'password.reset', ...fact }),
  ];
  if (user.emailVerified) return changes;
  const keys = await keysOf(options, user.id, address).removal(user.id);
  const next = userRow(user.id, { ...user, emailVerified: true }, row.createdAt, Math.max(at, row.updatedAt));
  return [
    ...changes,
    ...keys,
    { table: usersTable, id: user.id, expect: { rev: row.rev }, next },
    audit.entry({ type: 'email.verified', ...fact }),
  ];
}

/** An address is verified by the code that was sent to it (§5.4): once, in time, and only while the account still has that address. */
import type { Store } from '../../store/store.ts';
import type { Audit } from '../audit-fact.ts';
import { usersTable } from '../tables.ts';
import { commitRetried } from './commit-retried.ts';
import type { FindUser } from './find-user.ts';
import { findCode, removeCodes } from './mail-code.ts';
import { userRow } from './user-row.ts';

export type VerifyEmailOptions = {
  readonly store: Store;
  readonly findUser: FindUser;
  readonly audit: Pick<Audit, 'entry'>;
  readonly clock: () => number;
};

export type Verified =
  | { readonly ok: true }
  | { readonly ok: false; readonly problem: 'code_invalid' | 'unavailable' };

/** @param address where the request came from @throws StoreUnavailable */
export type VerifyEmail = (code: string, address: string) => Promise<Verified>;

export function createVerifyEmail({ store, findUser, audit, clock }: VerifyEmailOptions): VerifyEmail {
  return async (code, address) => {
    const attempt = async () => {
      const at = clock();
      const found = await findCode(store, code, 'verification', at);
      const owner = found === undefined ? undefined : await findUser.byId(found.userId);
      if (found === undefined || owner === undefined || owner.user.email !== found.email) return invalid;
      const { user, row } = owner;
      const updatedAt = Math.max(at, row.updatedAt);
      const next = userRow(user.id, { ...user, emailVerified: true }, row.createdAt, updatedAt);
      const changes = [
        found.removal,
        ...(await removeCodes(store, user.id, 'verification', found.removal.id)),
        { table: usersTable, id: user.id, expect: { rev: row.rev }, next },
        audit.entry({ type: 'email.verified', actor: user.id, subject: user.id, address }),
      ];
      return { changes, result: { ok: true } as const };
    };
    return commitRetried<Verified>(store, undefined, attempt, () => unavailable);
  };
}

const invalid = { refused: { ok: false, problem: 'code_invalid' } } as const;
const unavailable: Verified = { ok: false, problem: 'unavailable' };

/**
 * Changes a password, given the current one (§5.4). The same unit ends all other sessions of the account and removes its reset codes. A
 * wrong password counts as a failed login, so that an open session cannot be used to guess it.
 */

import { Type } from 'typebox';
import type { Allowance } from '../http/message.ts';
import { actionResource } from '../kernel/action.ts';
import type { Resource } from '../kernel/resource.ts';
import type { Scheme } from '../model/principal.ts';
import type { Services } from '../store/capabilities.ts';
import {
  type AccountRouteOptions,
  accountsTag,
  anyCredential,
  examplePassword,
  newPasswordSchema,
  type PasswordLimits,
  passwordSchema,
} from './account-schemas.ts';
import { passwordsTable } from './account-tables.ts';
import { type Audit, type From, originOf } from './audit-fact.ts';
import { commitRetried } from './commit-retried.ts';
import { fromOf } from './fact-of-ask.ts';
import { removeCodes } from './mail-code.ts';
import type { CheckPassword } from './passwords/check-password.ts';
import type { PasswordHasher } from './passwords/hasher.ts';
import { newPasswordFault, type PasswordBounds } from './passwords/new-password.ts';
import { passwordChange, readPassword } from './passwords/password-row.ts';
import { refusedBy, refusedField } from './refused-by.ts';
import type { Sessions } from './sessions/sessions.ts';
import type { FindUser } from './users/find-user.ts';

export type ChangePasswordOptions = PasswordBounds &
  Pick<Services, 'store' | 'clock'> & {
    readonly findUser: FindUser;
    readonly checkPassword: CheckPassword;
    readonly hasher: Pick<PasswordHasher, 'hash' | 'verify'>;
    readonly sessions: Pick<Sessions, 'endOfUser'>;
    readonly audit: Pick<Audit, 'entry'>;
  };

export type Changed =
  | { readonly ok: true }
  | {
      readonly ok: false;
      readonly problem: 'invalid_credentials' | 'rate_limited' | 'unavailable';
      readonly allowance?: Allowance;
    }
  | { readonly ok: false; readonly problem: 'validation_failed'; readonly fault: string };

/** @param who.session the session that continues, if any @throws StoreUnavailable */
export type ChangePassword = (
  who: From & { readonly userId: string; readonly session: string | null },
  currentPassword: string,
  newPassword: string,
) => Promise<Changed>;

export function createChangePassword(options: ChangePasswordOptions): ChangePassword {
  const { store, findUser, checkPassword, hasher, sessions, audit, clock } = options;
  return async (who, currentPassword, newPassword) => {
    const fault = newPasswordFault(newPassword, options);
    if (fault !== undefined) return { ok: false, problem: 'validation_failed', fault };
    const { userId } = who;
    const asker = await findUser.byId(userId);
    if (asker === undefined) return wrong;
    const checked = await checkPassword(asker.user.email, currentPassword, who, 'change');
    if (!checked.ok) {
      if (checked.allowance === undefined) return wrong;
      return { ok: false, problem: 'rate_limited', allowance: checked.allowance };
    }
    // The address may have moved to another account between the two reads.
    if (checked.found.user.id !== userId) return wrong;
    const hash = await hasher.hash(newPassword);
    let compared = checked.password.hash;
    const attempt = async () => {
      const standing = await readPassword(store, userId);
      if (standing === undefined || standing.hash === null) return { refused: wrong };
      // Another change came first, or a login renewed the hash of the same password.
      if (standing.hash !== compared && !(await hasher.verify(currentPassword, standing.hash))) {
        return { refused: wrong };
      }
      compared = standing.hash;
      const at = clock();
      const changes = [
        passwordChange(userId, standing, hash, at),
        ...(await sessions.endOfUser(userId, who.session)),
        ...(await removeCodes(store, userId, 'reset', null)),
        audit.entry({ type: 'password.changed', actor: userId, subject: userId, ...originOf(who) }),
      ];
      return { changes, result: { ok: true } as const };
    };
    const row = { table: passwordsTable, id: userId };
    return commitRetried<Changed>(store, row, attempt, () => unavailable);
  };
}

const wrong: Changed = { ok: false, problem: 'invalid_credentials' };
const unavailable: Changed = { ok: false, problem: 'unavailable' };

type PasswordResourceOptions = AccountRouteOptions &
  PasswordLimits & {
    readonly changePassword: ChangePassword;
  };

const schemesOfPeople: ReadonlySet<Scheme> = new Set<Scheme>(['token', 'session-cookie', 'password']);

/**
 * POST /auth/password (§5.4): a new password by the one that holds, which ends all other sessions of the account. The person has to be
 * there, so a key, which programs use, is not enough: 403.
 */
export function passwordResource(options: PasswordResourceOptions): Resource {
  const { base, changePassword, limits, addressOf } = options;
  return actionResource(
    {
      path: `${base}/auth/password`,
      tag: accountsTag,
      name: 'Password',
      noun: 'the password',
      id: 'changePassword',
      summary: 'Change the password',
      description: 'Ends all other sessions of the account. Keys are refused with 403.',
      input: {
        name: 'PasswordChange',
        schema: Type.Object({ currentPassword: passwordSchema, newPassword: newPasswordSchema(options) }),
        example: { currentPassword: examplePassword, newPassword: 'a much better one' },
      },
      schemes: ['bearer', 'basic', 'cookieAuth'],
      codes: ['forbidden', 'invalid_credentials', 'rate_limited'],
      permission: anyCredential,
      handler: async ({ known, request }, { currentPassword, newPassword }) => {
        if (known === undefined || !schemesOfPeople.has(known.scheme)) {
          return {
            refused: {
              code: 'forbidden',
              message:
                'this credential cannot change a password; use a session or the current password of the account',
            },
          };
        }
        const from = fromOf(request, addressOf);
        const who = { userId: known.principal.id, session: known.session, ...from };
        const changed = await changePassword(who, currentPassword, newPassword);
        if (changed.ok) return { content: null };
        return changed.problem === 'validation_failed'
          ? refusedField('/newPassword', changed.fault)
          : refusedBy(changed);
      },
    },
    limits,
  );
}

/**
 * Changes a password, given the current one (§5.4). The same unit ends all other sessions of the account and removes its reset codes. A
 * wrong password counts as a failed login, so that an open session cannot be used to guess it.
 */
import { Type } from 'typebox';
import type { Allowance } from '../http/message.ts';
import { actionResource } from '../kernel/action.ts';
import type { Resource } from '../kernel/resource.ts';
import { removeCodes } from './account-mail.ts';
import type { AccountParts } from './account-parts.ts';
import {
  accountsTag,
  anyCredential,
  examplePassword,
  newPasswordSchema,
  passwordSchema,
  refusedBy,
  refusedField,
  schemesOfPeople,
} from './account-schemas.ts';
import { passwordsTable } from './account-tables.ts';
import { type From, fromOf, originOf } from './audit-fact.ts';
import { commitRetried } from './commit-retried.ts';
import { newPasswordFault } from './passwords/new-password.ts';
import { passwordChange, readPassword } from './passwords/password-row.ts';

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

export function createChangePassword(parts: AccountParts): ChangePassword {
  const { store, findUser, checkPassword, hasher, sessions, audit, clock, settings } = parts;
  return async (who, currentPassword, newPassword) => {
    const fault = newPasswordFault(newPassword, settings);
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
      const stored = await readPassword(store, userId);
      if (stored === undefined || stored.hash === null) return { refused: wrong };
      // Another change came first, or a login renewed the hash of the same password.
      if (stored.hash !== compared && !(await hasher.verify(currentPassword, stored.hash))) {
        return { refused: wrong };
      }
      compared = stored.hash;
      const at = clock();
      const changes = [
        passwordChange(userId, stored, hash, at),
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

/**
 * POST /auth/password (§5.4): replaces the password, given the current one, and ends all other sessions of the account. It takes a
 * person: a key, which programs use, is refused with 403.
 */
export function passwordResource(parts: AccountParts): Resource {
  const { base, settings, addressOf } = parts;
  const changePassword = createChangePassword(parts);
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
        schema: Type.Object({ currentPassword: passwordSchema, newPassword: newPasswordSchema(settings) }),
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
    settings,
  );
}

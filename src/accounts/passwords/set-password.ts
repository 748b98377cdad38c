/**
 * Sets a password: with the current one, or with a mailed code (§5.4).
 *
 * The unit of a change also ends all other sessions of the account and removes the mailed codes that lead into it. A wrong password counts as a failed login,
 * which limits guesses through an open session.
 */
import { Type } from 'typebox';
import type { Allowance } from '../../http/message.ts';
import { actionResource } from '../../kernel/action.ts';
import type { Resource } from '../../kernel/resource.ts';
import { normalizeEmail } from '../../mail/email.ts';
import type { Change } from '../../store/store.ts';
import {
  codesOfAccess,
  codesOfOwner,
  type FoundCode,
  findCode,
  mailMissing,
  removeCodes,
} from '../account-mail.ts';
import { type AccountParts, commitRetried } from '../account-parts.ts';
import {
  accountsTag,
  anyCredential,
  codeSchema,
  emailSchema,
  exampleCode,
  exampleEmail,
  examplePassword,
  newPasswordFault,
  newPasswordSchema,
  passwordSchema,
  refusedBy,
  refusedField,
  schemesOfPeople,
} from '../account-schemas.ts';
import { passwordChange, passwordsTable, readPassword } from '../account-tables.ts';
import { type From, fromOf, originOf } from '../audit.ts';
import type { FoundUser } from '../users/user-row.ts';
import { proveAddress } from '../verify-email.ts';

type Changed =
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
        ...(await removeCodes(store, userId, codesOfAccess, null)),
        audit.entry({ type: 'password.changed', actor: userId, subject: userId, ...originOf(who) }),
      ];
      return { changes, result: { ok: true } as const };
    };
    const row = { table: passwordsTable, id: userId };
    return commitRetried<Changed>(store, row, attempt, () => unavailable);
  };
}

const wrong: Changed = { ok: false, problem: 'invalid_credentials' };
const unavailable = { ok: false, problem: 'unavailable' } as const;

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

// Sets a password by a mailed code (§5.4). One unit sets the password, removes the codes of the account, ends every session of the
// account, and verifies the address, which received the code.

type Reset =
  | { readonly ok: true }
  | { readonly ok: false; readonly problem: 'code_invalid' | 'unavailable' }
  /** The code stays valid. */
  | { readonly ok: false; readonly problem: 'validation_failed'; readonly fault: string };

/** @throws StoreUnavailable */
export type ResetPassword = (code: string, password: string, from: From) => Promise<Reset>;

export function createResetPassword(parts: AccountParts): ResetPassword {
  const { store, findUser, hasher, clock, settings } = parts;

  async function look(code: string, at: number): Promise<{ found: FoundCode; owner: FoundUser } | undefined> {
    const found = await findCode(store, code, ['reset'], at);
    const owner = found?.userId == null ? undefined : await findUser.byId(found.userId);
    if (found === undefined || owner === undefined) return undefined;
    return owner.user.disabled || owner.user.email !== found.email ? undefined : { found, owner };
  }

  return async (code, password, from) => {
    const fault = newPasswordFault(password, settings);
    if (fault !== undefined) return { ok: false, problem: 'validation_failed', fault };
    // Hashes only for a valid code.
    const first = await look(code, clock());
    if (first === undefined) return { ok: false, problem: 'code_invalid' };
    const hash = await hasher.hash(password);
    let clear = async (): Promise<void> => undefined;
    const attempt = async () => {
      const at = clock();
      const good = await look(code, at);
      if (good === undefined) return invalid;
      const changes = await buildChanges(parts, { ...good, hash, at, from });
      const proven = await proveAddress(parts, good.owner, { from, at, reason: 'password.reset' });
      ({ clear } = proven);
      return { changes: [...changes, ...proven.changes], result: { ok: true } as const };
    };
    const row = { table: passwordsTable, id: first.owner.user.id };
    const done = await commitRetried<Reset>(store, row, attempt, () => unavailable);
    if (done.ok) await clear();
    return done;
  };
}

const invalid = { refused: { ok: false, problem: 'code_invalid' } } as const;

type Good = {
  readonly found: FoundCode;
  readonly owner: FoundUser;
  readonly hash: string;
  readonly at: number;
  readonly from: From;
};

async function buildChanges(parts: AccountParts, good: Good): Promise<readonly Change[]> {
  const { store, sessions, audit } = parts;
  const { found, owner, hash, at, from } = good;
  const { user } = owner;
  const stored = await readPassword(store, user.id);
  const fact = { actor: user.id, subject: user.id, ...originOf(from) };
  return [
    found.removal,
    ...(await removeCodes(store, user.id, codesOfOwner, found.removal.id)),
    passwordChange(user.id, stored, hash, at),
    ...(await sessions.endOfUser(user.id, null)),
    audit.entry({ type: 'password.reset', ...fact }),
  ];
}

/**
 * POST /auth/password-reset has a code sent to the address of an account, POST /auth/password-reset/confirm takes it with a new password
 * (§5.4). The first answers 204 whether or not there is such an account, and without waiting for anything that would differ.
 */
export function passwordResetResources(parts: AccountParts): readonly Resource[] {
  const { base, mail, settings, addressOf } = parts;
  const resetPassword = createResetPassword(parts);
  const shared = { tag: accountsTag, ignoresCredentials: true };
  const request = actionResource(
    {
      ...shared,
      path: `${base}/auth/password-reset`,
      name: 'PasswordReset',
      id: 'requestPasswordReset',
      summary: 'Request a mail with a code to reset the password',
      description:
        'The response is the same whether the account exists or not. 503 if no mail server is configured.',
      input: {
        name: 'PasswordResetRequest',
        schema: Type.Object({ email: emailSchema }),
        example: { email: exampleEmail },
      },
      codes: [],
      handler: (ask, input) => {
        if (!mail.isConfigured) return mailMissing;
        const email = normalizeEmail(input.email);
        const from = fromOf(ask.request, addressOf);
        if (email !== undefined) mail.request({ purpose: 'reset', for: { email }, ...from });
        return { content: null };
      },
    },
    settings,
  );
  const confirmation = actionResource(
    {
      ...shared,
      path: `${base}/auth/password-reset/confirm`,
      name: 'PasswordResetConfirmation',
      id: 'confirmPasswordReset',
      summary: 'Set a new password with the code',
      description: 'Ends all sessions of the account and verifies its address.',
      input: {
        name: 'PasswordReset',
        schema: Type.Object({ code: codeSchema, password: newPasswordSchema(settings) }),
        example: { code: exampleCode, password: examplePassword },
      },
      codes: ['code_invalid'],
      handler: async (ask, { code, password }) => {
        const reset = await resetPassword(code, password, fromOf(ask.request, addressOf));
        if (reset.ok) return { content: null };
        return reset.problem === 'validation_failed'
          ? refusedField('/password', reset.fault)
          : refusedBy(reset);
      },
    },
    settings,
  );
  return [request, confirmation];
}

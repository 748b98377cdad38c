/**
 * Sets a password by a mailed code (§5.4). One unit sets the password, removes all codes of the account, ends every session of the
 * account, and verifies the address, which received the code. Before the address is verified, a stranger may have registered it and
 * created keys. So the keys of such an account are revoked; those of a verified account belong to its owner, who can revoke them.
 */
import { Type } from 'typebox';
import { actionResource } from '../kernel/action.ts';
import type { Resource } from '../kernel/resource.ts';
import { normalizeEmail } from '../mail/email.ts';
import type { Change } from '../store/store.ts';
import { type FoundCode, findCode, mailMissing, removeCodes } from './account-mail.ts';
import type { AccountParts } from './account-parts.ts';
import {
  accountsTag,
  codeSchema,
  emailSchema,
  exampleCode,
  exampleEmail,
  examplePassword,
  newPasswordSchema,
  refusedBy,
  refusedField,
} from './account-schemas.ts';
import { passwordsTable, usersTable } from './account-tables.ts';
import { type From, fromOf, originOf } from './audit-fact.ts';
import { commitRetried } from './commit-retried.ts';
import { createKeysOfOwner, type KeysOfOwner } from './keys/keys-of-owner.ts';
import { newPasswordFault } from './passwords/new-password.ts';
import { passwordChange, readPassword } from './passwords/password-row.ts';
import type { FoundUser } from './users/find-user.ts';
import { userRow } from './users/user-row.ts';

export type Reset =
  | { readonly ok: true }
  | { readonly ok: false; readonly problem: 'code_invalid' | 'unavailable' }
  /** The code stays valid. */
  | { readonly ok: false; readonly problem: 'validation_failed'; readonly fault: string };

/** @throws StoreUnavailable */
export type ResetPassword = (code: string, password: string, from: From) => Promise<Reset>;

export function createResetPassword(parts: AccountParts): ResetPassword {
  const { store, findUser, hasher, clock, settings } = parts;

  async function look(code: string, at: number): Promise<{ found: FoundCode; owner: FoundUser } | undefined> {
    const found = await findCode(store, code, 'reset', at);
    const owner = found === undefined ? undefined : await findUser.byId(found.userId);
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
    let claimed: string | undefined;
    const attempt = async () => {
      const at = clock();
      const good = await look(code, at);
      if (good === undefined) return invalid;
      claimed = good.owner.user.emailVerified ? undefined : good.owner.user.id;
      const changes = await buildChanges(parts, { ...good, hash, at, from });
      return { changes, result: { ok: true } as const };
    };
    const row = { table: passwordsTable, id: first.owner.user.id };
    const done = await commitRetried<Reset>(store, row, attempt, () => unavailable);
    if (claimed !== undefined && done.ok) await createKeys(parts, claimed, from).clear(claimed);
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
  readonly from: From;
};

function createKeys({ store, audit }: AccountParts, user: string, from: From): KeysOfOwner {
  return createKeysOfOwner(store, (key) =>
    audit.entry({
      type: 'key.revoked',
      actor: user,
      subject: key,
      ...originOf(from),
      detail: { reason: 'password.reset' },
    }),
  );
}

async function buildChanges(parts: AccountParts, good: Good): Promise<readonly Change[]> {
  const { store, sessions, audit, accounts } = parts;
  const { found, owner, hash, at, from } = good;
  const { user, row } = owner;
  const stored = await readPassword(store, user.id);
  const fact = { actor: user.id, subject: user.id, ...originOf(from) };
  const changes = [
    found.removal,
    ...(await removeCodes(store, user.id, 'all', found.removal.id)),
    passwordChange(user.id, stored, hash, at),
    ...(await sessions.endOfUser(user.id, null)),
    audit.entry({ type: 'password.reset', ...fact }),
  ];
  if (user.emailVerified) return changes;
  const keys = await createKeys(parts, user.id, from).removal(user.id);
  const updatedAt = Math.max(at, row.updatedAt);
  const next = userRow(accounts.users, user.id, { ...user, emailVerified: true }, row.createdAt, updatedAt);
  return [
    ...changes,
    ...keys,
    { table: usersTable, id: user.id, expect: { rev: row.rev }, next },
    audit.entry({ type: 'email.verified', ...fact }),
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
      noun: 'the reset of a password',
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
      noun: 'a new password',
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

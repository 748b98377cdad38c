/**
 * The address of an account, changed by its owner (§5.4.7). A code goes to the new address, and proves it at /auth/verification/confirm:
 * only then does the account change. The unit of the change mails another code to the address before, which takes the change back for a
 * day, whatever happens to the account meanwhile: a stranger who gets hold of an account could otherwise keep it by its address.
 */
import { Type } from 'typebox';
import type { Problem } from '../http/problem.ts';
import { actionResource, type Done } from '../kernel/action.ts';
import type { Ask, Resource } from '../kernel/resource.ts';
import { normalizeEmail } from '../mail/email.ts';
import type { Change } from '../store/store.ts';
import { codesOfOwner, type FoundCode, findCode, mailMissing, removeCodes } from './account-mail.ts';
import type { AccountParts } from './account-parts.ts';
import {
  accountsTag,
  checkEmail,
  codeSchema,
  emailSchema,
  exampleCode,
  exampleEmail,
  examplePassword,
  newPasswordFault,
  newPasswordSchema,
  refusedField,
} from './account-schemas.ts';
import { passwordChange, readPassword, readUser, usersTable } from './account-tables.ts';
import { fromOf, originOf } from './audit.ts';
import { mailCodePurposes } from './mail-texts.ts';
import {
  byOwner,
  changeFactor,
  people,
  proofCodes,
  proofDescription,
  proofMembers,
} from './second-factor/change-factor.ts';
import { userRow } from './users/user-row.ts';

const codeInvalid: Done = { refused: { code: 'code_invalid' } };

/** POST /auth/me/email and POST /auth/me/email/undo. */
export function emailResources(parts: AccountParts): readonly Resource[] {
  const { base, settings } = parts;
  const change = actionResource(
    {
      ...people,
      path: `${base}/auth/me/email`,
      name: 'Email',
      id: 'changeEmail',
      summary: 'Change the e-mail address of your account',
      description: `Mails a code to the new address, which \`/auth/verification/confirm\` takes; the account changes then. The response is the same if the address has another account. ${proofDescription} 503 if no mail server is configured.`,
      input: {
        name: 'EmailChange',
        schema: Type.Object({ email: emailSchema, ...proofMembers }),
        example: { email: exampleEmail, password: examplePassword },
      },
      codes: proofCodes,
      check: checkEmail,
      handler: (ask, input) => (parts.mail.isConfigured ? requestChange(ask, input) : mailMissing),
    },
    settings,
  );
  const requestChange = byOwner(
    parts,
    async (_parts, owner, { email, ...proof }: { readonly email: string }) => {
      const proven = await changeFactor(parts, owner, proof, ({ factor }) => ({
        ...{ next: factor, facts: [], result: null },
      }));
      const { userId: id, session: _session, ...from } = owner;
      const to = normalizeEmail(email);
      if (proven.ok && to !== undefined) parts.mail.request({ purpose: 'address', for: { id }, to, ...from });
      return proven;
    },
  );
  const undo = actionResource(
    {
      path: `${base}/auth/me/email/undo`,
      tag: accountsTag,
      ignoresCredentials: true,
      name: 'EmailUndo',
      id: 'undoEmailChange',
      summary: 'Take back a change of the e-mail address',
      description:
        'For the owner of the address before, with the code that was mailed there. Ends all sessions of the account, its password and all codes that were mailed to it. Without a new `password`, the account has none until one is set by a reset.',
      input: {
        name: 'EmailUndoCode',
        schema: Type.Object({ code: codeSchema, password: Type.Optional(newPasswordSchema(settings)) }),
        example: { code: exampleCode },
      },
      codes: ['code_invalid', 'unique_taken', ...hookCodes(parts)],
      handler: (ask, { code, password }) => undoChange(parts, ask, code, password),
    },
    settings,
  );
  return [change, undo];
}

/** Codes by which the hook of accounts, and their references, refuse a change. */
export function hookCodes({ newAccounts }: Pick<AccountParts, 'newAccounts'>): readonly Problem['code'][] {
  return newAccounts.isPlain ? [] : ['field_missing', 'reference_missing'];
}

/** Gives the account the address that the code was mailed to. @throws StoreUnavailable */
export function changeAddress(parts: AccountParts, ask: Ask, code: string): Promise<Done> {
  return setAddress(parts, ask, { code, purpose: 'address' }, async (found, { id, email }) => [
    ...(await removeCodes(parts.store, id, codesOfOwner, found.removal.id)),
    ...parts.mail.mint({ id, email }, 'undo'),
  ]);
}

async function undoChange(
  parts: AccountParts,
  ask: Ask,
  code: string,
  password: string | undefined,
): Promise<Done> {
  const { store, sessions, hasher, clock, settings } = parts;
  const fault = password === undefined ? undefined : newPasswordFault(password, settings);
  if (fault !== undefined) return refusedField('/password', fault);
  // Hashes only for a valid code.
  if ((await findCode(store, code, ['undo'], clock())) === undefined) return codeInvalid;
  const hash = password === undefined ? null : await hasher.hash(password);
  return setAddress(parts, ask, { code, purpose: 'undo' }, async (found, { id }, at) => {
    const before = await readPassword(store, id);
    return [
      ...(await removeCodes(store, id, mailCodePurposes, found.removal.id)),
      ...(await sessions.endOfUser(id, null)),
      passwordChange(id, before, hash, Math.max(at, before?.row.updatedAt ?? 0)),
    ];
  });
}

/** @param further what the unit changes besides; gets the account as it was */
function setAddress(
  parts: AccountParts,
  ask: Ask,
  { code, purpose }: { readonly code: string; readonly purpose: 'address' | 'undo' },
  further: (
    found: FoundCode,
    user: { readonly id: string; readonly email: string },
    at: number,
  ) => Promise<readonly Change[]>,
): Promise<Done> {
  const { store, findUser, newAccounts, audit, clock, addressOf } = parts;
  return store.lines.change(undefined, async () => {
    const at = clock();
    const found = await findCode(store, code, [purpose], at);
    const owner = found?.userId == null ? undefined : await findUser.byId(found.userId);
    if (found === undefined || owner === undefined || owner.user.disabled) return codeInvalid;
    const { user, row } = owner;
    const { id, createdAt: _created, updatedAt: _updated, ...fields } = user;
    const account = { id, fields: { ...fields, email: found.email, emailVerified: true } };
    const committed = await newAccounts.commit(
      ask,
      store,
      account,
      async (changed) => {
        const next = userRow(
          newAccounts.users,
          id,
          changed.fields,
          row.createdAt,
          Math.max(at, row.updatedAt),
        );
        const fact = { actor: id, subject: id, ...originOf(fromOf(ask.request, addressOf)) };
        const detail = { members: ['email'], ...(purpose === 'undo' ? { reason: 'undone' } : {}) };
        const changes = [
          found.removal,
          { table: usersTable, id, expect: { rev: row.rev }, next } as const,
          ...(await further(found, user, at)),
          audit.entry({ type: 'account.changed', ...fact, detail }),
        ];
        return { changes, result: readUser(next.doc) };
      },
      row,
    );
    if ('result' in committed) return { content: null };
    return committed;
  });
}

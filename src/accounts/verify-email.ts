/** Verifies an address by the code mailed to it (§5.4): once, before it expires, and only while the account has that address. */
import { Type } from 'typebox';
import { actionResource, type Done } from '../kernel/action.ts';
import type { Ask, Resource } from '../kernel/resource.ts';
import { normalizeEmail } from '../mail/email.ts';
import type { Change } from '../store/store.ts';
import { findCode, mailMissing, removeCodes } from './account-mail.ts';
import { type AccountParts, commitRetried } from './account-parts.ts';
import {
  accountsTag,
  codeSchema,
  emailSchema,
  exampleCode,
  exampleEmail,
  refusedBy,
} from './account-schemas.ts';
import { unchanged, usersTable } from './account-tables.ts';
import { type AuditType, type From, fromOf, originOf } from './audit.ts';
import { changeAddress, hookCodes } from './change-email.ts';
import { createKeysOfOwner } from './keys/key-rows.ts';
import { type FoundUser, userRow } from './users/user-row.ts';

export type Verified =
  | { readonly ok: true }
  | { readonly ok: false; readonly problem: 'code_invalid' | 'unavailable' };

/** @throws StoreUnavailable */
export type VerifyEmail = (code: string, from: From) => Promise<Verified>;

export function createVerifyEmail({ store, findUser, accounts, audit, clock }: AccountParts): VerifyEmail {
  return async (code, from) => {
    const attempt = async () => {
      const at = clock();
      const found = await findCode(store, code, ['verification'], at);
      const owner = found?.userId == null ? undefined : await findUser.byId(found.userId);
      if (found === undefined || owner === undefined || owner.user.email !== found.email) return invalid;
      const { user, row } = owner;
      const updatedAt = Math.max(at, row.updatedAt);
      const next = userRow(
        accounts.users,
        user.id,
        { ...user, emailVerified: true },
        row.createdAt,
        updatedAt,
      );
      const changes = [
        found.removal,
        ...(await removeCodes(store, user.id, ['verification'], found.removal.id)),
        { table: usersTable, id: user.id, expect: { rev: row.rev }, next },
        audit.entry({ type: 'email.verified', actor: user.id, subject: user.id, ...originOf(from) }),
      ];
      return { changes, result: { ok: true } as const };
    };
    return commitRetried<Verified>(store, undefined, attempt, () => unavailable);
  };
}

/**
 * The changes by which a mailed code that leads into an account also proves its address. Before that, a stranger may have registered the
 * address and created keys, so the keys of such an account are revoked; those of a verified account belong to its owner, who can revoke
 * them. The caller ends the sessions and the password of an account that is claimed so.
 * @param how.at milliseconds since the epoch
 */
export async function proveAddress(
  { store, accounts, audit }: AccountParts,
  { user, row }: FoundUser,
  how: { readonly from: From; readonly at: number; readonly reason: AuditType },
): Promise<{
  readonly changes: readonly Change[];
  readonly isClaimed: boolean;
  /** Revokes the keys that did not fit into the unit. Call it after the commit. */
  readonly clear: () => Promise<void>;
}> {
  if (user.emailVerified)
    return { changes: [unchanged(row)], isClaimed: false, clear: async () => undefined };
  const { from, at, reason } = how;
  const fact = { actor: user.id, ...originOf(from) };
  const keys = createKeysOfOwner(store, (key) =>
    audit.entry({ type: 'key.revoked', subject: key, ...fact, detail: { reason } }),
  );
  const updatedAt = Math.max(at, row.updatedAt);
  const next = userRow(accounts.users, user.id, { ...user, emailVerified: true }, row.createdAt, updatedAt);
  const changes = [
    ...(await keys.removal(user.id)),
    { table: usersTable, id: user.id, expect: { rev: row.rev }, next },
    audit.entry({ type: 'email.verified', subject: user.id, ...fact }),
  ];
  return { changes, isClaimed: true, clear: () => keys.clear(user.id) };
}

const invalid = { refused: { ok: false, problem: 'code_invalid' } } as const;
const unavailable: Verified = { ok: false, problem: 'unavailable' };

/**
 * POST /auth/verification has a code sent to the address of an account, POST /auth/verification/confirm takes it (§5.4). The first answers
 * 204 whether or not there is such an account, and without waiting for anything that would differ.
 */
export function verificationResources(parts: AccountParts): readonly Resource[] {
  const { base, settings, accounts, addressOf } = parts;
  const verifyEmail = createVerifyEmail(parts);
  const request = actionResource(
    {
      path: `${base}/auth/verification`,
      tag: accountsTag,
      name: 'Verification',
      id: 'requestVerification',
      summary: 'Request a mail with a code to verify the address',
      description:
        'Sends the mail to the address of the caller, or, without a credential, to the address in the content. The response is the same whether the account exists or not. 503 if no mail server is configured.',
      input: {
        name: 'VerificationRequest',
        schema: Type.Object({ email: Type.Optional(emailSchema) }),
        example: { email: exampleEmail },
        optional: true,
      },
      // Without a credential somebody has to be named.
      codes: ['field_missing'],
      handler: (ask, { email }) => requestMail(parts, ask, email),
    },
    settings,
  );
  const confirmation = actionResource(
    {
      path: `${base}/auth/verification/confirm`,
      tag: accountsTag,
      name: 'VerificationConfirmation',
      id: 'confirmVerification',
      summary: 'Verify the address with the code',
      ...(accounts.emailChange
        ? {
            description:
              'Also takes the code of `/auth/me/email`, by which the account gets the address that the code was mailed to.',
          }
        : {}),
      input: {
        name: 'VerificationCode',
        schema: Type.Object({ code: codeSchema }),
        example: { code: exampleCode },
      },
      codes: ['code_invalid', 'unique_taken', ...hookCodes(parts)],
      handler: async (ask, { code }) => {
        const verified = await verifyEmail(code, fromOf(ask.request, addressOf));
        if (verified.ok) return { content: null };
        const mayBeNew = accounts.emailChange && verified.problem === 'code_invalid';
        return mayBeNew ? changeAddress(parts, ask, code) : refusedBy(verified);
      },
    },
    settings,
  );
  return [request, confirmation];
}

/** For the address that was named, or else for the account that asks. */
function requestMail({ mail, addressOf }: AccountParts, ask: Ask, typed: string | undefined): Done {
  if (!mail.isConfigured) return mailMissing;
  const from = fromOf(ask.request, addressOf);
  if (typed !== undefined) {
    const email = normalizeEmail(typed);
    if (email !== undefined) mail.request({ purpose: 'verification', for: { email }, ...from });
  } else if (ask.principal.kind === 'authenticated') {
    mail.request({ purpose: 'verification', for: { id: ask.principal.id }, ...from });
  } else {
    const errors = [{ pointer: '/email', message: 'is required in a request without a credential' }];
    return { refused: { code: 'field_missing', errors } };
  }
  return { content: null };
}

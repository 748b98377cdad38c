/** Verifies an address by the code mailed to it (§5.4): once, before it expires, and only while the account has that address. */
import { Type } from 'typebox';
import { actionResource, type Done } from '../kernel/action.ts';
import type { Ask, Resource } from '../kernel/resource.ts';
import { normalizeEmail } from '../mail/email.ts';
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
import { usersTable } from './account-tables.ts';
import { type From, fromOf, originOf } from './audit.ts';
import { userRow } from './users/user-row.ts';

export type Verified =
  | { readonly ok: true }
  | { readonly ok: false; readonly problem: 'code_invalid' | 'unavailable' };

/** @throws StoreUnavailable */
export type VerifyEmail = (code: string, from: From) => Promise<Verified>;

export function createVerifyEmail({ store, findUser, accounts, audit, clock }: AccountParts): VerifyEmail {
  return async (code, from) => {
    const attempt = async () => {
      const at = clock();
      const found = await findCode(store, code, 'verification', at);
      const owner = found === undefined ? undefined : await findUser.byId(found.userId);
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
        ...(await removeCodes(store, user.id, 'verification', found.removal.id)),
        { table: usersTable, id: user.id, expect: { rev: row.rev }, next },
        audit.entry({ type: 'email.verified', actor: user.id, subject: user.id, ...originOf(from) }),
      ];
      return { changes, result: { ok: true } as const };
    };
    return commitRetried<Verified>(store, undefined, attempt, () => unavailable);
  };
}

const invalid = { refused: { ok: false, problem: 'code_invalid' } } as const;
const unavailable: Verified = { ok: false, problem: 'unavailable' };

/**
 * POST /auth/verification has a code sent to the address of an account, POST /auth/verification/confirm takes it (§5.4). The first answers
 * 204 whether or not there is such an account, and without waiting for anything that would differ.
 */
export function verificationResources(parts: AccountParts): readonly Resource[] {
  const { base, settings, addressOf } = parts;
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
      input: {
        name: 'VerificationCode',
        schema: Type.Object({ code: codeSchema }),
        example: { code: exampleCode },
      },
      codes: ['code_invalid'],
      handler: async (ask, { code }) => {
        const verified = await verifyEmail(code, fromOf(ask.request, addressOf));
        return verified.ok ? { content: null } : refusedBy(verified);
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

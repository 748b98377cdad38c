/**
 * POST /auth/verification has a code sent to the address of an account, POST /auth/verification/confirm takes it (§5.4). The first answers
 * 204 whether or not there is such an account, and without waiting for anything that would differ.
 */
import { Type } from 'typebox';
import type { AccountMail } from '../../auth/accounts/account-mail.ts';
import type { VerifyEmail } from '../../auth/accounts/verify-email.ts';
import { normalizeEmail } from '../../auth/email.ts';
import { type ActionOptions, actionResource, type Done } from '../action/action.ts';
import type { Ask, Resource } from '../resource.ts';
import type { AddressOf } from './fact-of-ask.ts';
import { mailMissing } from './mail-missing.ts';
import { refusedBy } from './refused-by.ts';

export type VerificationResourcesOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly mail: Pick<AccountMail, 'isConfigured' | 'request'>;
  readonly verifyEmail: VerifyEmail;
  readonly limits: ActionOptions['limits'];
  readonly addressOf: AddressOf;
};

const wishSchema = Type.Object({ email: Type.Optional(Type.String()) }, { additionalProperties: false });
const codeSchema = Type.Object({ code: Type.String() }, { additionalProperties: false });

export function verificationResources(options: VerificationResourcesOptions): readonly Resource[] {
  const { base, verifyEmail, limits, addressOf } = options;
  return [
    actionResource({
      path: `${base}/auth/verification`,
      schema: wishSchema,
      contentOptional: true,
      limits,
      act: async (ask, content) => wish(options, ask, (content as { readonly email?: string }).email),
    }),
    actionResource({
      path: `${base}/auth/verification/confirm`,
      schema: codeSchema,
      limits,
      act: async (ask, content) => {
        const verified = await verifyEmail(String(content.code), addressOf(ask.request));
        return verified.ok ? { content: null } : refusedBy(verified);
      },
    }),
  ];
}

/** For the address that was named, or else for the account that asks. */
function wish({ mail, addressOf }: VerificationResourcesOptions, ask: Ask, typed: string | undefined): Done {
  if (!mail.isConfigured) return mailMissing;
  const address = addressOf(ask.request);
  if (typed !== undefined) {
    const email = normalizeEmail(typed);
    if (email !== undefined) mail.request({ purpose: 'verification', for: { email }, address });
  } else if (ask.principal.kind === 'authenticated') {
    mail.request({ purpose: 'verification', for: { id: ask.principal.id }, address });
  } else {
    const errors = [{ pointer: '/email', message: 'is required without a credential' }];
    return { refused: { code: 'field_missing', errors } };
  }
  return { content: null };
}

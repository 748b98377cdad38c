/**
 * POST /auth/password-reset has a code sent to the address of an account, POST /auth/password-reset/confirm takes it with a new password
 * (§5.4). The first answers 204 whether or not there is such an account, and without waiting for anything that would differ.
 */
import { Type } from 'typebox';
import type { AccountMail } from '../../auth/accounts/account-mail.ts';
import type { ResetPassword } from '../../auth/accounts/reset-password.ts';
import { normalizeEmail } from '../../auth/email.ts';
import { type ActionOptions, actionResource } from '../action/action.ts';
import type { Resource } from '../resource.ts';
import type { AddressOf } from './fact-of-ask.ts';
import { mailMissing } from './mail-missing.ts';
import { refusedBy, refusedField } from './refused-by.ts';

export type PasswordResetResourcesOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly mail: Pick<AccountMail, 'isConfigured' | 'request'>;
  readonly resetPassword: ResetPassword;
  readonly limits: ActionOptions['limits'];
  readonly addressOf: AddressOf;
};

const wishSchema = Type.Object({ email: Type.String() }, { additionalProperties: false });
const codeSchema = Type.Object(
  { code: Type.String(), password: Type.String() },
  { additionalProperties: false },
);

export function passwordResetResources(options: PasswordResetResourcesOptions): readonly Resource[] {
  const { base, mail, resetPassword, limits, addressOf } = options;
  return [
    actionResource({
      ignoresCredentials: true,
      path: `${base}/auth/password-reset`,
      schema: wishSchema,
      limits,
      act: async (ask, content) => {
        if (!mail.isConfigured) return mailMissing;
        const email = normalizeEmail(String(content.email));
        const address = addressOf(ask.request);
        if (email !== undefined) mail.request({ purpose: 'reset', for: { email }, address });
        return { content: null };
      },
    }),
    actionResource({
      ignoresCredentials: true,
      path: `${base}/auth/password-reset/confirm`,
      schema: codeSchema,
      limits,
      act: async (ask, content) => {
        const { code, password } = content as { readonly code: string; readonly password: string };
        const reset = await resetPassword(code, password, addressOf(ask.request));
        if (reset.ok) return { content: null };
        return reset.problem === 'validation_failed'
          ? refusedField('/password', reset.fault)
          : refusedBy(reset);
      },
    }),
  ];
}

/** Change of password, verification of addresses and reset of forgotten passwords by codes that are mailed (§5.4). */
import type { Components } from '../components.ts';
import type { PathDescription } from '../path-item.ts';
import { type AccountLimits, takenContent } from './account-schemas.ts';
import { type Action, actionDescription } from './action.ts';
import { accountsTag, anyCredential } from './login-paths.ts';

export type PasswordOptions = {
  readonly base: string;
  readonly limits: AccountLimits;
  readonly components: Components;
};

export function passwordPaths({ base, limits, components }: PasswordOptions): readonly PathDescription[] {
  const taken = takenContent(limits);
  const path = (rest: string, name: string, noun: string, action: Omit<Action, 'tag'>): PathDescription => ({
    path: `${base}/auth/${rest}`,
    name,
    noun,
    operations: [actionDescription({ ...action, tag: accountsTag }, components)],
  });
  return [
    path('password', 'Password', 'the password', {
      id: 'changePassword',
      summary: 'Change the password',
      description: 'Ends all other sessions of the account. A key may not do this: 403.',
      takes: ['PasswordChange', taken.PasswordChange],
      schemes: ['bearer', 'basic', 'cookieAuth'],
      traits: { gate: anyCredential },
      codes: ['forbidden', 'invalid_credentials', 'rate_limited', 'validation_failed'],
    }),
    path('verification', 'Verification', 'the verification of an address', {
      id: 'requestVerification',
      summary: 'Have a code mailed that verifies the address',
      description:
        'To the address of the caller, or without a credential to the one that is named. The answer does not tell whether there is such an account. 503 where no mail server is configured.',
      takes: ['VerificationRequest', taken.VerificationRequest],
      contentOptional: true,
      // Without a credential somebody has to be named.
      codes: ['field_missing'],
    }),
    path('verification/confirm', 'VerificationConfirmation', 'a verified address', {
      id: 'confirmVerification',
      summary: 'Verify the address by the code',
      takes: ['VerificationCode', taken.VerificationCode],
      codes: ['code_invalid'],
    }),
    path('password-reset', 'PasswordReset', 'the reset of a password', {
      id: 'requestPasswordReset',
      summary: 'Have a code mailed that sets a new password',
      description:
        'The answer does not tell whether there is such an account. 503 where no mail server is configured.',
      takes: ['PasswordResetRequest', taken.PasswordResetRequest],
      codes: [],
    }),
    path('password-reset/confirm', 'PasswordResetConfirmation', 'a password that was reset', {
      id: 'confirmPasswordReset',
      summary: 'Set a new password by the code',
      description: 'Ends all sessions of the account, and verifies its address.',
      takes: ['PasswordReset', taken.PasswordReset],
      codes: ['code_invalid', 'validation_failed'],
    }),
  ];
}

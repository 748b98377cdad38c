/**
 * POST /auth/password (§5.4): a new password by the one that holds, which ends all other sessions of the account. The person has to be
 * there, so a key, which programs use, is not enough: 403.
 */
import { Type } from 'typebox';
import type { ChangePassword } from '../../auth/accounts/change-password.ts';
import type { Scheme } from '../../model/credential.ts';
import { type ActionOptions, actionResource } from '../action/action.ts';
import type { Resource } from '../resource.ts';
import type { AddressOf } from './fact-of-ask.ts';
import { refusedBy, refusedField } from './refused-by.ts';

export type PasswordResourceOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly changePassword: ChangePassword;
  readonly limits: ActionOptions['limits'];
  readonly addressOf: AddressOf;
};

const schema = Type.Object(
  { currentPassword: Type.String(), newPassword: Type.String() },
  { additionalProperties: false },
);

type Content = { readonly currentPassword: string; readonly newPassword: string };

const schemesOfPeople: ReadonlySet<Scheme> = new Set<Scheme>(['token', 'session-cookie', 'password']);

export function passwordResource(options: PasswordResourceOptions): Resource {
  const { base, changePassword, limits, addressOf } = options;
  return actionResource({
    path: `${base}/auth/password`,
    schema,
    limits,
    permission: (principal) => (principal.kind === 'authenticated' ? 'granted' : 'denied'),
    act: async (ask, content) => {
      const { known, request } = ask;
      if (known === undefined || !schemesOfPeople.has(known.scheme)) {
        return { refused: { code: 'forbidden', message: 'this credential may not change a password' } };
      }
      const { currentPassword, newPassword } = content as Content;
      const who = { userId: known.principal.id, session: known.session, address: addressOf(request) };
      const changed = await changePassword(who, currentPassword, newPassword);
      if (changed.ok) return { content: null };
      return changed.problem === 'validation_failed'
        ? refusedField('/newPassword', changed.fault)
        : refusedBy(changed);
    },
  });
}

/**
 * POST /auth/register (§5.4, surface "Auth"): an account, and a session of it. Where addresses must be verified before a login, the
 * answer holds the account alone. With `cookie: true` it sets the session cookie besides, which no page of another site may ask for.
 */
import { Type } from 'typebox';
import type { Register, Registered, Registration } from '../../auth/accounts/register.ts';
import type { CrossSiteCheck } from '../../auth/cross-site.ts';
import { type ActionOptions, actionResource, type Done } from '../action/action.ts';
import type { Resource } from '../resource.ts';
import type { AddressOf } from './fact-of-ask.ts';

export type RegisterResourceOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly register: Register;
  /** False: administrators alone make accounts. */
  readonly registrationOpen: boolean;
  readonly isCrossSite: CrossSiteCheck;
  readonly limits: ActionOptions['limits'];
  readonly addressOf: AddressOf;
};

const nameCharactersMax = 200;

const schema = Type.Object(
  {
    email: Type.String(),
    password: Type.String(),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: nameCharactersMax })),
    cookie: Type.Optional(Type.Boolean({ default: false })),
  },
  { additionalProperties: false },
);

export function registerResource(options: RegisterResourceOptions): Resource {
  const { base, register, registrationOpen, isCrossSite, limits, addressOf } = options;
  return actionResource({
    ignoresCredentials: true,
    path: `${base}/auth/register`,
    schema,
    limits,
    act: async (ask, content) => {
      if (!registrationOpen) return { refused: { code: 'forbidden', message: 'registration is closed' } };
      const { cookie = false, ...registration } = content as Registration & { readonly cookie?: boolean };
      if (cookie && isCrossSite(ask.request)) return { refused: { code: 'cross_site_request' } };
      return answer(base, await register(registration, { cookie, address: addressOf(ask.request) }));
    },
  });
}

function answer(base: string, registered: Registered): Done {
  if (registered.ok) {
    const { user, opened } = registered;
    const created = `${base}/users/${user.id}`;
    if (opened === null) return { content: { user: { id: user.id, email: user.email } }, created };
    return { content: opened.content, created, fields: opened.fields };
  }
  switch (registered.problem) {
    case 'unique_taken':
      return {
        refused: {
          code: 'unique_taken',
          message: 'email is already in use',
          errors: [{ pointer: '/email', message: 'already in use' }],
        },
      };
    case 'validation_failed':
      return { refused: { code: 'validation_failed', errors: registered.faults } };
    case 'unavailable':
      return { refused: { code: 'unavailable' } };
  }
}

/**
 * POST /auth/login (§5.4, §8, surface "Auth"). Every reason why it cannot be is the same 401, apart from too many failures before. With
 * `cookie: true` it sets the session cookie besides; a page of another site may not ask for that, or it could log a browser in to an
 * account of its own.
 */
import { Type } from 'typebox';
import type { Login } from '../../auth/accounts/login.ts';
import type { CrossSiteCheck } from '../../auth/cross-site.ts';
import { type ActionOptions, actionResource } from '../action/action.ts';
import type { Resource } from '../resource.ts';
import type { AddressOf } from './fact-of-ask.ts';
import { refusedBy } from './refused-by.ts';

export type LoginResourceOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly login: Login;
  readonly isCrossSite: CrossSiteCheck;
  readonly limits: ActionOptions['limits'];
  readonly addressOf: AddressOf;
};

const schema = Type.Object(
  {
    email: Type.String(),
    password: Type.String(),
    cookie: Type.Optional(Type.Boolean({ default: false })),
  },
  { additionalProperties: false },
);

type Content = { readonly email: string; readonly password: string; readonly cookie?: boolean };

export function loginResource(options: LoginResourceOptions): Resource {
  const { base, login, isCrossSite, limits, addressOf } = options;
  return actionResource({
    ignoresCredentials: true,
    path: `${base}/auth/login`,
    schema,
    limits,
    act: async (ask, content) => {
      const { email, password, cookie = false } = content as Content;
      if (cookie && isCrossSite(ask.request)) return { refused: { code: 'cross_site_request' } };
      const done = await login(email, password, { cookie, address: addressOf(ask.request) });
      return done.ok ? { content: done.opened.content, fields: done.opened.fields } : refusedBy(done);
    },
  });
}

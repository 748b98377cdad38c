/**
 * POST /auth/refresh (§2.3, §5.4): a refresh token for the next one and a new access token. It is its own credential, so nothing else
 * is asked for. Whatever is wrong with it, the answer is the same 401.
 */
import { Type } from 'typebox';
import type { Sessions } from '../../auth/sessions/sessions.ts';
import { type ActionOptions, actionResource } from '../action/action.ts';
import type { Resource } from '../resource.ts';
import type { AddressOf } from './fact-of-ask.ts';

export type RefreshOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly sessions: Pick<Sessions, 'refresh'>;
  readonly limits: ActionOptions['limits'];
  readonly addressOf: AddressOf;
};

const schema = Type.Object({ refreshToken: Type.String() }, { additionalProperties: false });

export function refreshResource(options: RefreshOptions): Resource {
  return actionResource({
    ignoresCredentials: true,
    path: `${options.base}/auth/refresh`,
    schema,
    limits: options.limits,
    act: async (ask, content) => {
      const { refreshToken } = content as { readonly refreshToken: string };
      const refreshed = await options.sessions.refresh(refreshToken, options.addressOf(ask.request));
      return refreshed.ok ? { content: refreshed.content } : { refused: { code: 'invalid_token' } };
    },
  });
}

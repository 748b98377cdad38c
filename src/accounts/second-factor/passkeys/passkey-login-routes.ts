/** POST /auth/login/passkey/options and /auth/login/passkey (§5.8): logins by passkey, alone or after a password. */

import { Type } from 'typebox';
import { actionResource } from '../../../kernel/action.ts';
import type { Resource } from '../../../kernel/resource.ts';
import { type AccountRouteOptions, accountsTag, cookieSchema, tokensOutput } from '../../account-schemas.ts';
import type { CrossSiteCheck } from '../../cross-site.ts';
import { fromOf } from '../../fact-of-ask.ts';
import { exampleChallenge } from '../factor-examples.ts';
import type { FinishLoginOptions } from '../finish-login.ts';
import { finishedDone } from '../finish-login-route.ts';
import { beginPasskeyLogin, finishPasskeyLogin } from './passkey-login.ts';
import { assertionSchema, exampleAssertion, passkeyRequestOutput } from './passkey-schemas.ts';

export type PasskeyLoginRoutesOptions = AccountRouteOptions &
  FinishLoginOptions & { readonly isCrossSite: CrossSiteCheck };

const shared = { tag: accountsTag, ignoresCredentials: true } as const;

export function passkeyLoginResources(options: PasskeyLoginRoutesOptions): readonly Resource[] {
  const { base, limits, addressOf, isCrossSite, verifiedEmailRequired } = options;
  const begin = actionResource(
    {
      ...shared,
      path: `${base}/auth/login/passkey/options`,
      noun: 'the options for a login by passkey',
      id: 'beginPasskeyLogin',
      summary: 'Get the options for a login by passkey',
      description:
        'Without a `challenge`: any discoverable passkey, which verifies its user. With the `challenge` of a login by password: a passkey of that account.',
      input: {
        name: 'PasskeyLoginOptions',
        schema: Type.Object({ challenge: Type.Optional(Type.String()) }),
        example: { challenge: exampleChallenge },
        optional: true,
      },
      output: passkeyRequestOutput,
      codes: ['challenge_invalid'],
      handler: async (_ask, { challenge }) => {
        const begun = await beginPasskeyLogin(options, challenge);
        return begun === undefined ? { refused: { code: 'challenge_invalid' } } : { content: { ...begun } };
      },
    },
    limits,
  );
  const finish = actionResource(
    {
      ...shared,
      path: `${base}/auth/login/passkey`,
      noun: 'a login by passkey',
      id: 'loginByPasskey',
      summary: 'Log in by passkey',
      description: 'A challenge works once.',
      input: {
        name: 'PasskeyLogin',
        schema: Type.Object({ challenge: Type.String(), response: assertionSchema, cookie: cookieSchema }),
        example: { challenge: exampleChallenge, response: exampleAssertion },
      },
      output: tokensOutput,
      fields: ['Set-Cookie'],
      codes: [
        ...(verifiedEmailRequired ? (['email_unverified'] as const) : []),
        ...(['challenge_invalid', 'cross_site_request', 'passkey_invalid'] as const),
      ],
      handler: async (ask, { challenge, response, cookie = false }) => {
        if (cookie && isCrossSite(ask.request)) return { refused: { code: 'cross_site_request' } };
        const from = fromOf(ask.request, addressOf);
        return finishedDone(await finishPasskeyLogin(options, { challenge, response, cookie, ...from }));
      },
    },
    limits,
  );
  return [begin, finish];
}

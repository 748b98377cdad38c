/** POST /auth/login/second-factor (§5.8): finishes a login whose password was right. */

import { Type } from 'typebox';
import { actionResource, type Done } from '../../kernel/action.ts';
import type { Resource } from '../../kernel/resource.ts';
import { type AccountRouteOptions, accountsTag, cookieSchema, tokensOutput } from '../account-schemas.ts';
import type { CrossSiteCheck } from '../cross-site.ts';
import { fromOf } from '../fact-of-ask.ts';
import { type Refusal, refusedBy } from '../refused-by.ts';
import type { Opened } from '../sessions/sessions.ts';
import { exampleChallenge, exampleFactorCode } from './factor-examples.ts';
import { factorCodeSchema } from './factor-schemas.ts';
import type { FinishLogin } from './finish-login.ts';

export type FinishLoginRouteOptions = AccountRouteOptions & {
  readonly finishLogin: FinishLogin;
  readonly isCrossSite: CrossSiteCheck;
};

const schema = Type.Object({
  challenge: Type.String({ description: 'From the 401 of the login.' }),
  code: factorCodeSchema,
  cookie: cookieSchema,
});

/** The response to a login of one or two steps. */
export function finishedDone(
  done: { readonly ok: true; readonly opened: Opened } | (Refusal & { readonly ok: false }),
): Done {
  return done.ok ? { content: done.opened.content, fields: done.opened.fields } : refusedBy(done);
}

export function finishLoginResource(options: FinishLoginRouteOptions): Resource {
  const { base, limits, addressOf, finishLogin, isCrossSite } = options;
  return actionResource(
    {
      path: `${base}/auth/login/second-factor`,
      tag: accountsTag,
      noun: 'the second step of a login',
      ignoresCredentials: true,
      id: 'finishLogin',
      summary: 'Finish a login with the second factor',
      description:
        'A challenge works once. Wrong codes are limited by account and by address, as failed logins are, and leave the challenge valid.',
      input: {
        name: 'LoginSecondFactor',
        schema,
        example: { challenge: exampleChallenge, code: exampleFactorCode },
      },
      output: tokensOutput,
      fields: ['Set-Cookie'],
      codes: ['challenge_invalid', 'cross_site_request', 'rate_limited', 'second_factor_invalid'],
      handler: async (ask, { challenge, code, cookie = false }) => {
        if (cookie && isCrossSite(ask.request)) return { refused: { code: 'cross_site_request' } };
        const done = await finishLogin({ challenge, code, cookie, ...fromOf(ask.request, addressOf) });
        return finishedDone(done);
      },
    },
    limits,
  );
}

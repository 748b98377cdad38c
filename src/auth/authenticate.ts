/**
 * Credential to principal (§5.1). Every request is checked anew. Carriers are looked at in a fixed order and the
 * first that holds something decides: a bad credential is never forgiven because a good one came besides.
 *
 * Until accounts exist, the one principal is the administrator key, which every carrier may bring: as Bearer, as
 * ApiKey, in X-API-Key or api_key, or as the Basic user name with an empty password.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { Request } from '../http/message.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import { formatChallenges } from '../http/syntax/authorization.ts';
import type { Known } from '../model/credential.ts';
import { type Anonymous, administratorRole, anonymous, authenticated, scopes } from '../model/principal.ts';
import { authorizationCarrier } from './carriers/authorization.ts';
import { queryParameterCarrier } from './carriers/query-parameter.ts';
import { xApiKeyCarrier } from './carriers/x-api-key.ts';
import type { Carrier, Credential } from './credential.ts';

const carriers: readonly Carrier[] = [authorizationCarrier, xApiKeyCarrier, queryParameterCarrier];

export const administrator = authenticated({
  id: 'administrator',
  scopes,
  roles: [administratorRole],
});

const realm = 'comity';
const otherSchemes = [
  { scheme: 'ApiKey', parameters: { realm } },
  { scheme: 'Basic', parameters: { realm, charset: 'UTF-8' } },
];
const plainChallenges = formatChallenges([{ scheme: 'Bearer', parameters: { realm } }, ...otherSchemes]);
/** RFC 6750 §3.1: only a request that brought a bad token is told so. */
const tokenChallenges = formatChallenges([
  { scheme: 'Bearer', parameters: { realm, error: 'invalid_token' } },
  ...otherSchemes,
]);

/** Every scheme that would be accepted, for `WWW-Authenticate` (§5.1). */
export function challengesFor(problem: ProblemCode): string {
  return problem === 'invalid_token' ? tokenChallenges : plainChallenges;
}

export type Authenticate = (
  request: Request,
  query: string | undefined,
) => Known | { readonly principal: Anonymous } | { readonly problem: ProblemCode };

const nobody = { principal: anonymous };
const admitted: Known = {
  principal: administrator,
  scheme: 'key',
  session: null,
  key: null,
  confirmed: undefined,
  onEnd: () => () => undefined,
};

/** @param adminKeyHash SHA-256 of the administrator key as it is now; the key itself is kept nowhere */
export function createAuthenticate(adminKeyHash: () => Uint8Array): Authenticate {
  const isAdminKey = (key: string) => timingSafeEqual(hash('sha256', key, 'buffer'), adminKeyHash());
  return (request, query) => {
    for (const carrier of carriers) {
      const credential = carrier(request.fields, query);
      if (credential !== undefined) return judge(credential, isAdminKey);
    }
    return nobody;
  };
}

function judge(credential: Credential, isAdminKey: (key: string) => boolean): ReturnType<Authenticate> {
  switch (credential.kind) {
    case 'key':
      return isAdminKey(credential.key) ? admitted : { problem: 'invalid_api_key' };
    case 'bearer':
      return isAdminKey(credential.token) ? admitted : { problem: 'invalid_token' };
    case 'password':
      return credential.password === '' && isAdminKey(credential.user)
        ? admitted
        : { problem: 'invalid_credentials' };
    case 'unreadable':
      return { problem: credential.problem };
  }
}

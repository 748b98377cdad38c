/**
 * Chooses the verifier for each kind of credential (§5.2), and the problem for a key in another carrier: a key sent as a token is an
 * invalid token, not an invalid key.
 */
import type { ProblemCode } from '../http/problem-registry.ts';
import type { MaybePromise } from '../store/store.ts';
import { whenKnown } from '../store/when-known.ts';
import type { From } from './audit-fact.ts';
import type { Credential } from './credential.ts';
import { portalSessionMark } from './portal/portal-rows.ts';
import type { Verdict } from './verdict.ts';

export type Verifiers = {
  key(key: string): MaybePromise<Verdict>;
  /** An access token of Comity or of a trusted issuer. */
  token(token: string): MaybePromise<Verdict>;
  /** @param from has the address that failed attempts are counted by */
  password(user: string, password: string, from: From): Promise<Verdict>;
  /** The session of a consumer's portal; absent: there is no portal. */
  readonly portal?: (token: string) => MaybePromise<Verdict>;
  /** @param cookie value of the session cookie */
  session(cookie: string): MaybePromise<Verdict>;
};

export function verifyCredential(
  verifiers: Verifiers,
  credential: Credential,
  from: From,
): MaybePromise<Verdict> {
  switch (credential.kind) {
    case 'key':
      return verifiers.key(credential.key);
    case 'bearer':
      if (credential.token.startsWith(portalSessionMark)) {
        return verifiers.portal?.(credential.token) ?? { problem: 'invalid_token' };
      }
      return looksLikeKey(credential.token)
        ? withProblem(verifiers.key(credential.token), 'invalid_token')
        : verifiers.token(credential.token);
    case 'password':
      return credential.password === '' && looksLikeKey(credential.user)
        ? withProblem(verifiers.key(credential.user), 'invalid_credentials')
        : verifiers.password(credential.user, credential.password, from);
    case 'session':
      return verifiers.session(credential.cookie);
  }
}

/** No JWT starts like this; an e-mail address may, but no account has an empty password. */
function looksLikeKey(text: string): boolean {
  return text.startsWith('sk_') || text.startsWith('pk_');
}

function withProblem(verdict: MaybePromise<Verdict>, problem: ProblemCode): MaybePromise<Verdict> {
  const tell = (found: Verdict): Verdict =>
    'problem' in found && found.problem === 'invalid_api_key' ? { ...found, problem } : found;
  return whenKnown(verdict, tell);
}

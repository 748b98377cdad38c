/**
 * Who judges which kind of credential (§5.2). The verifiers themselves are elsewhere; here is only what a caller is told where one
 * kind stands in the place of another: a key sent as a token is an invalid token, not an invalid key (surface, "401 messages").
 */
import type { ProblemCode } from '../http/problem-registry.ts';
import type { MaybePromise } from '../store/store.ts';
import { whenKnown } from '../store/when-known.ts';
import type { Credential } from './credential.ts';
import type { Verdict } from './verdict.ts';

export type Verifiers = {
  /** The administrator key or an API key. */
  key(key: string): MaybePromise<Verdict>;
  /** An access token of ours or of a trusted issuer. */
  token(token: string): MaybePromise<Verdict>;
  /** @param address that failed attempts are counted by */
  password(user: string, password: string, address: string): Promise<Verdict>;
  /** @param cookie value of the session cookie */
  session(cookie: string): MaybePromise<Verdict>;
};

/** Hands a credential to whom it concerns. @param address where it came from */
export function verifyCredential(
  verifiers: Verifiers,
  credential: Credential,
  address: string,
): MaybePromise<Verdict> {
  switch (credential.kind) {
    case 'key':
      return verifiers.key(credential.key);
    case 'bearer':
      return looksLikeKey(credential.token)
        ? retold(verifiers.key(credential.token), 'invalid_token')
        : verifiers.token(credential.token);
    case 'password':
      return credential.password === '' && looksLikeKey(credential.user)
        ? retold(verifiers.key(credential.user), 'invalid_credentials')
        : verifiers.password(credential.user, credential.password, address);
    case 'session':
      return verifiers.session(credential.cookie);
  }
}

/** No JWT begins so; an e-mail address may, but no account has an empty password. */
function looksLikeKey(text: string): boolean {
  return text.startsWith('sk_') || text.startsWith('pk_');
}

function retold(verdict: MaybePromise<Verdict>, problem: ProblemCode): MaybePromise<Verdict> {
  const tell = (found: Verdict): Verdict =>
    'problem' in found && found.problem === 'invalid_api_key' ? { ...found, problem } : found;
  return whenKnown(verdict, tell);
}

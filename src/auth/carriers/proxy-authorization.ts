/**
 * `Proxy-Authorization: Basic | Bearer` (§5.2; RFC 9110 §11.7.2): a key or a token as Bearer; as Basic a key for the user name with
 * an empty password, or an e-mail address and its password. What a proxy client can send is mostly Basic.
 */
import { parseCredentials } from '../../http/syntax/authorization.ts';
import type { Carrier } from '../credential.ts';
import { isBasic, readPasswordOrToken } from './authorization.ts';

export const proxyAuthorizationCarrier: Carrier = {
  mark: 'p',
  find: (fields) => fields.proxyAuthorization,
  read: (text) => {
    const credentials = parseCredentials(text);
    if (credentials !== undefined) return readPasswordOrToken(credentials.scheme, credentials.token68 ?? '');
    return { kind: 'unreadable', problem: isBasic(text) ? 'invalid_credentials' : 'invalid_token' };
  },
  holdsPassword: isBasic,
};

/**
 * `Proxy-Authorization: Basic | Bearer` (§5.2; RFC 9110 §11.7.2): a key or a token as Bearer; as Basic a key for the user name with
 * an empty password, or the user name `key` with a key for its password, or an e-mail address and its password. What a proxy client can send
 * is mostly Basic, and some, such as Python's urllib, send none without a password.
 */
import { parseCredentials } from '../../http/syntax/authorization.ts';
import type { Carrier } from '../credential.ts';
import { isBasic, readPasswordOrToken } from './authorization.ts';

/** No account has it: their user names are e-mail addresses. */
const keyUser = 'key';

export const proxyAuthorizationCarrier: Carrier = {
  mark: 'p',
  find: (fields) => fields.proxyAuthorization,
  read: (text) => {
    const credentials = parseCredentials(text);
    if (credentials !== undefined) {
      const read = readPasswordOrToken(credentials.scheme, credentials.token68 ?? '');
      return read.kind === 'password' && read.user === keyUser ? { kind: 'key', key: read.password } : read;
    }
    return { kind: 'unreadable', problem: isBasic(text) ? 'invalid_credentials' : 'invalid_token' };
  },
  holdsPassword: isBasic,
};

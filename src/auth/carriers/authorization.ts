/**
 * `Authorization: Basic | Bearer | ApiKey | Api-Key` (§5.2; RFC 9110 §11.6.2, RFC 6750 §2.1, RFC 7617).
 * An unknown scheme is a credential this server cannot use, hence an invalid one. So is a field with several schemes, and one with
 * parameters where a token68 belongs: nobody can say which of them was meant.
 */
import { decodeBasic, parseCredentials } from '../../http/syntax/authorization.ts';
import type { Carrier, Credential, Unreadable } from '../credential.ts';

export const authorizationCarrier: Carrier = {
  mark: 'a',
  find: (fields) => fields.authorization,
  read: (text) => {
    const credentials = parseCredentials(text);
    if (credentials === undefined) return { kind: 'unreadable', problem: unreadable(text) };
    const { scheme, token68 = '', parameters } = credentials;
    if (scheme !== 'apikey' && scheme !== 'api-key') return readPasswordOrToken(scheme, token68);
    if (token68 !== '') return { kind: 'key', key: token68 };
    return { kind: 'unreadable', problem: parameters === undefined ? 'api_key_required' : 'invalid_api_key' };
  },
  holdsPassword: isBasic,
};

/** `Basic` and `Bearer`, which a proxy takes as well; any other scheme is unusable. @param scheme in lower case */
export function readPasswordOrToken(scheme: string, token68: string): Credential | Unreadable {
  if (scheme === 'bearer' && token68 !== '') return { kind: 'bearer', token: token68 };
  if (scheme !== 'basic') return { kind: 'unreadable', problem: 'invalid_token' };
  const decoded = decodeBasic(token68);
  return decoded === undefined
    ? { kind: 'unreadable', problem: 'invalid_credentials' }
    : { kind: 'password', ...decoded };
}

/** Errs on the safe side: of the schemes that are taken, Basic alone begins so. */
export function isBasic(text: string): boolean {
  const field = text.charCodeAt(0) <= 0x20 ? text.trimStart() : text;
  return (field.charCodeAt(0) | 0x20) === 0x62 && (field.charCodeAt(1) | 0x20) === 0x61;
}

/** A scheme that is known is refused in its own words, also where what follows it breaks the grammar. */
export function unreadable(field: string): Unreadable['problem'] {
  const scheme = field.trimStart().split(' ', 1)[0]?.toLowerCase();
  if (scheme === 'basic') return 'invalid_credentials';
  return scheme === 'apikey' || scheme === 'api-key' ? 'invalid_api_key' : 'invalid_token';
}

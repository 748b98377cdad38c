/**
 * `Authorization: Basic | Bearer | ApiKey | Api-Key` (§5.2; RFC 9110 §11.6.2, RFC 6750 §2.1, RFC 7617).
 * An unknown scheme is a credential this server cannot use, hence an invalid one.
 */
import { decodeBasic, parseCredentials } from '../../http/syntax/authorization.ts';
import type { Carrier, Credential } from '../credential.ts';

export const authorizationCarrier: Carrier = (request) => {
  if (request.authorization === undefined) return undefined;
  const credentials = parseCredentials(request.authorization);
  if (credentials === undefined) return { kind: 'unreadable', problem: unreadable(request.authorization) };
  const token = credentials.token68 ?? '';
  switch (credentials.scheme) {
    case 'bearer':
      return token === '' ? { kind: 'unreadable', problem: 'invalid_token' } : { kind: 'bearer', token };
    case 'apikey':
    case 'api-key':
      return token === '' ? { kind: 'unreadable', problem: 'api_key_required' } : { kind: 'key', key: token };
    case 'basic':
      return basic(token);
    default:
      return { kind: 'unreadable', problem: 'invalid_token' };
  }
};

/** A scheme that is known is refused in its own words, also where what follows it breaks the grammar. */
function unreadable(field: string): 'invalid_token' | 'invalid_credentials' | 'invalid_api_key' {
  const scheme = field.trimStart().split(' ', 1)[0]?.toLowerCase();
  if (scheme === 'basic') return 'invalid_credentials';
  return scheme === 'apikey' || scheme === 'api-key' ? 'invalid_api_key' : 'invalid_token';
}

function basic(token: string): Credential {
  const decoded = decodeBasic(token);
  return decoded === undefined
    ? { kind: 'unreadable', problem: 'invalid_credentials' }
    : { kind: 'password', ...decoded };
}

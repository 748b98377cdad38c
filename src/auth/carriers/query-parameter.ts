/**
 * `?api_key=<key>` (§5.2): the least secure carrier, since URLs end up in logs; our own never hold a query string.
 */
import { parseQueryString } from '../../http/syntax/query-string.ts';
import type { Carrier } from '../credential.ts';

export const queryParameterCarrier: Carrier = (_request, query) => {
  // Decoding every query string to find none would cost each list a microsecond.
  if (query === undefined || !query.includes('api_key=')) return undefined;
  const found = parseQueryString(query)?.find(([name]) => name === 'api_key');
  if (found === undefined) return undefined;
  const key = found[1].trim();
  return key === '' ? { kind: 'unreadable', problem: 'api_key_required' } : { kind: 'key', key };
};

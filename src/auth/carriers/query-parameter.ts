/**
 * `?api_key=<key>` (§5.2): the least secure carrier, since URLs end up in logs; our own never hold a query string.
 * The name counts however it is escaped; twice is a credential in two places.
 */
import { parseQueryString } from '../../http/syntax/query-string.ts';
import type { Carrier, Unreadable } from '../credential.ts';
import { readKey } from './x-api-key.ts';

const parameter = 'api_key';
const repeated: Unreadable = { kind: 'unreadable', problem: 'credentials_repeated' };
const malformed: Unreadable = { kind: 'unreadable', problem: 'invalid_api_key' };

export const queryParameterCarrier: Carrier = {
  mark: 'q',
  // Taking every query string apart to find none would cost each list a microsecond.
  find: (_fields, query) =>
    query !== undefined && (query.includes(parameter) || query.includes('%')) ? findIn(query) : undefined,
  read: readKey,
  holdsPassword: () => false,
};

/** Looks at names alone, since what the other parameters hold is not decided here. */
function findIn(query: string): string | Unreadable | undefined {
  let found: string | Unreadable | undefined;
  let start = 0;
  while (start < query.length) {
    const ampersand = query.indexOf('&', start);
    const end = ampersand === -1 ? query.length : ampersand;
    if (isKey(query, start, end)) {
      if (found !== undefined) return repeated;
      found = parseQueryString(query.slice(start, end))?.[0]?.[1] ?? malformed;
    }
    start = end + 1;
  }
  return found;
}

function isKey(query: string, start: number, end: number): boolean {
  const equals = query.indexOf('=', start);
  const nameEnd = equals === -1 || equals > end ? end : equals;
  // No escape makes a name shorter.
  if (nameEnd - start < parameter.length) return false;
  if (nameEnd - start === parameter.length) return query.startsWith(parameter, start);
  const name = query.slice(start, nameEnd);
  return name.includes('%') && parseQueryString(name)?.[0]?.[0] === parameter;
}

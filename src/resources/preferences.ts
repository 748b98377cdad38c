/**
 * The preferences of RFC 7240 that this server knows. Unknown ones are ignored, as §2 of that RFC asks.
 */
import { parsePrefer } from '../http/syntax/prefer.ts';

export type Preferences = {
  readonly return: 'minimal' | 'representation' | undefined;
  readonly respondAsync: boolean;
  readonly countExact: boolean;
};

export const noPreferences: Preferences = { return: undefined, respondAsync: false, countExact: false };

export function readPreferences(field: string | undefined): Preferences {
  if (field === undefined) return noPreferences;
  const preferences = parsePrefer(field);
  const wanted = preferences.get('return')?.value;
  return {
    return: wanted === 'minimal' || wanted === 'representation' ? wanted : undefined,
    respondAsync: preferences.has('respond-async'),
    countExact: preferences.get('count')?.value === 'exact',
  };
}

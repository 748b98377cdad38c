/** A POST as operations see it, for tests of what stands behind the walk. */
import { readRequestFields } from '../../src/http/request-fields.ts';
import { type Ask, noPreferences } from '../../src/kernel/resource.ts';
import { authenticated } from '../../src/model/principal.ts';

export type AskParts = Partial<Pick<Ask, 'principal' | 'preferences' | 'now'>> & {
  readonly target?: string;
  /** Besides Host: name, value, name, value ... */
  readonly fields?: readonly string[];
};

export function askOf({ target = '/things', fields = [], ...parts }: AskParts): Ask {
  const rawFields = ['Host', 'localhost', ...fields];
  return {
    request: {
      method: 'POST',
      target,
      version: '1.1',
      fields: readRequestFields(rawFields),
      rawFields,
      readContent: () => Promise.reject(new Error('the content was read before')),
      peer: '',
      id: 'test',
    },
    captures: [],
    query: undefined,
    preferences: noPreferences,
    principal: authenticated({ id: 'someone', scopes: ['write'] }),
    party: 'someone',
    known: undefined,
    now: Date.now(),
    companions: [],
    ...parts,
  };
}

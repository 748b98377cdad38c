/** A principal whose credential is beyond doubt, for tests that are about something else. */
import type { Known } from '../../src/model/credential.ts';
import type { Authenticated } from '../../src/model/principal.ts';

export function knownAs(principal: Authenticated): Known {
  return {
    principal,
    scheme: 'key',
    session: null,
    key: null,
    confirmed: undefined,
    onEnd: () => () => undefined,
  };
}

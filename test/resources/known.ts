/** A principal whose credential is beyond doubt, for tests that are about something else. */
import type { Authenticated, Known } from '../../src/model/principal.ts';

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

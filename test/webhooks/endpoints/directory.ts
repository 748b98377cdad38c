/** The directory of endpoints over a store, as the program has it. Every owner is there and may do what the scopes say. */
import { authenticated } from '../../../src/model/principal.ts';
import type { Store } from '../../../src/store/store.ts';
import { createEndpointDirectory } from '../../../src/webhooks/sending/fan-out/directory.ts';
import type { EndpointDirectory } from '../../../src/webhooks/sending/known-endpoint.ts';

export function openDirectory(store: Store, clock: () => number): Promise<EndpointDirectory> {
  return createEndpointDirectory(
    { store, clock, observe: () => undefined },
    [],
    async (owner, scopes) => (owner === null ? undefined : authenticated({ id: owner, scopes })),
    [],
  );
}

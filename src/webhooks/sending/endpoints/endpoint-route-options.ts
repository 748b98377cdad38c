/** Options of the endpoints' resources, in addition to those of every collection. */

import type { Principal } from '../../../model/principal.ts';
import type { Store } from '../../../store/store.ts';
import type { EndpointDirectory } from '../known-endpoint.ts';
import type { Wakes } from '../wakes.ts';

export type EndpointResourcesOptions = {
  /** The store without fan-out, for commits that concern one endpoint alone. */
  readonly plainStore: Store;
  readonly directory: Pick<EndpointDirectory, 'size' | 'countOf' | 'generationChanges' | 'refresh'>;
  readonly wakes: Pick<Wakes, 'changesFor' | 'announce'>;
  /** Returns that many octets of cryptographic randomness. */
  readonly random: (count: number) => Buffer;
  /**
   * Returns why nothing may be sent to this URL, as the predicate of a sentence; undefined for a valid one. Makes no
   * DNS query.
   */
  readonly refuseUrl: (url: string) => string | undefined;
  /** Returns a sample of the resource in events of this type; undefined for a type that the caller is not told of. */
  readonly sampleOf: (type: string, principal: Principal) => Readonly<Record<string, unknown>> | undefined;
  readonly endpointDisableSeconds: number;
  readonly endpointsMax: number;
  readonly endpointsPerOwnerMax: number;
  readonly secretOverlapSecondsMax: number;
  readonly webhookHeadersMax: number;
  readonly webhookHeaderCharactersMax: number;
};

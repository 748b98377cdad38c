/** What the resources of endpoints need besides what every collection does. */

import type { Store } from '../../../store/store.ts';
import type { EndpointDirectory } from '../known-endpoint.ts';
import type { Wakes } from '../wakes.ts';

export type EndpointResourcesOptions = {
  /** The store without fan-out: what goes to one endpoint alone is committed through it. */
  readonly plainStore: Store;
  readonly directory: Pick<EndpointDirectory, 'size' | 'countOf' | 'generationChanges' | 'refresh'>;
  readonly wakes: Pick<Wakes, 'changesFor' | 'announce'>;
  /** That many octets of good randomness. */
  readonly random: (count: number) => Buffer;
  /** Why nothing is sent to this URL, as the predicate of a sentence; undefined for a good one. Asks no name server. */
  readonly refuseUrl: (url: string) => string | undefined;
  /** A resource that an event of this type could tell of; undefined for a type that there is not. */
  readonly sampleOf: (type: string) => Readonly<Record<string, unknown>> | undefined;
  readonly endpointsMax: number;
  readonly endpointsPerOwnerMax: number;
  readonly secretOverlapSecondsMax: number;
  readonly webhookHeadersMax: number;
  readonly webhookHeaderCharactersMax: number;
};

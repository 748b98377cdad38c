/** The parts that the resources of sending webhooks share beside the services of the program. sending.ts creates them once. */
import type { Principal } from '../../model/principal.ts';
import type { Services } from '../../store/capabilities.ts';
import type { EventTypes } from './event-types/event-types.ts';
import type { ContentFilters } from './fan-out/content-filter.ts';
import type { EndpointDirectory } from './known-endpoint.ts';
import type { ViewOf } from './send-delivery.ts';
import type { Wakes } from './wakes.ts';

/** `store` is without fan-out, for commits that concern one endpoint alone. */
export type SendingParts = Services & {
  readonly directory: EndpointDirectory;
  readonly wakes: Pick<Wakes, 'changesFor' | 'announce'>;
  readonly eventTypes: EventTypes;
  readonly filters: Pick<ContentFilters, 'faults'>;
  /** The event as the owner of an endpoint is sent it. */
  readonly view: ViewOf;
  /**
   * Returns why nothing may be sent to this URL, as the predicate of a sentence; undefined for a valid one. Makes no
   * DNS query.
   */
  readonly refuseUrl: (url: string) => string | undefined;
  /** Returns a sample of the resource in events of this type; undefined for a type that the caller gets no events of. */
  readonly sampleOf: (type: string, principal: Principal) => Readonly<Record<string, unknown>> | undefined;
  /** Drops the event from the memory of this process's sender. */
  readonly forget: (eventId: string) => void;
};

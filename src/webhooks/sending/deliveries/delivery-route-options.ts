/** Options of the deliveries' resources, in addition to those of every collection. */
import type { EndpointDirectory } from '../known-endpoint.ts';
import type { ViewOf } from '../send-delivery.ts';
import type { Wakes } from '../wakes.ts';

export type DeliveryResourcesOptions = {
  readonly directory: Pick<EndpointDirectory, 'get' | 'mayReceive'>;
  /** The event as the owner of an endpoint is sent it. */
  readonly view: ViewOf;
  readonly wakes: Pick<Wakes, 'changesFor' | 'announce'>;
  /** Age up to which a delivery may be sent again by hand. */
  readonly resendSeconds: number;
  /** The same for the command line. */
  readonly resendCommandLineSeconds: number;
};

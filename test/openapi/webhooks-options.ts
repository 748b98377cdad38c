/** How the program is set up that sends webhooks, for the document of it: the defaults of the settings. */
import type { Configuration } from '../../src/config/configuration.ts';
import type { WebhookOptions } from '../../src/openapi/webhooks/webhook-setting.ts';
import {
  deliveriesCollection,
  endpointsCollection,
  recoveriesCollection,
} from '../../src/webhooks/outbound/collections.ts';
import { eventTypesOf } from '../../src/webhooks/outbound/event-types/event-types.ts';

export function webhooksOf(configuration: Pick<Configuration, 'collections' | 'eventTypes'>): WebhookOptions {
  return {
    collections: {
      endpoints: endpointsCollection,
      deliveries: deliveriesCollection,
      recoveries: recoveriesCollection,
    },
    eventTypes: [...eventTypesOf(configuration).values()],
    secretOverlapSecondsMax: 86_400,
  };
}

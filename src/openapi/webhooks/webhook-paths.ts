/** Every path of sending webhooks (§6): endpoints, deliveries, recoveries, types of events, and what is done with events besides reading. */
import type { Components } from '../components.ts';
import type { CollectionLimits } from '../described.ts';
import type { Item } from '../item.ts';
import type { PathDescription } from '../path-item.ts';
import { deliveryPaths } from './delivery-paths.ts';
import { endpointPaths } from './endpoint-paths.ts';
import { eventTypePaths } from './event-type-paths.ts';
import { expungePath } from './posted-event-paths.ts';
import { recoveryPaths } from './recovery-paths.ts';
import type { WebhookCollections, WebhookOptions, WebhookSetting } from './webhook-setting.ts';

export function webhookPaths(
  base: string,
  { collections, secretOverlapSecondsMax }: WebhookOptions,
  listLimits: CollectionLimits,
  components: Components,
): readonly PathDescription[] {
  const limits = { ...listLimits, secretOverlapSecondsMax };
  const setting: WebhookSetting = { collections, base, limits, components };
  return [
    ...endpointPaths(setting),
    ...deliveryPaths(setting),
    ...recoveryPaths(setting),
    ...eventTypePaths(base, listLimits, components),
    expungePath(base, components),
  ];
}

export function webhookTags({ endpoints, deliveries, recoveries }: WebhookCollections): readonly Item[] {
  return [
    ...[endpoints, deliveries, recoveries].map(({ name, description }) => ({ name, description })),
    { name: 'event-types', description: 'What endpoints can ask for.' },
  ];
}

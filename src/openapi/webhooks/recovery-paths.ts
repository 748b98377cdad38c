/** Recoveries (§6): how far requests to send again have come, as in resources/webhooks/recoveries. They begin at their endpoint. */
import { collectionPaths } from '../collection-paths.ts';
import type { PathDescription } from '../path-item.ts';
import { builtInNames } from '../schema-names.ts';
import type { WebhookSetting } from './webhook-setting.ts';

export function recoveryPaths({
  collections,
  base,
  limits,
  components,
}: WebhookSetting): readonly PathDescription[] {
  return collectionPaths(collections.recoveries, builtInNames.recoveries, base, limits, components, {
    idPrefix: 'rcv_',
    operations: new Set(['list', 'query', 'read', 'delete']),
    revise: {
      delete: (plain) => ({ ...plain, description: 'Stops it where it runs, and forgets it.' }),
    },
  });
}

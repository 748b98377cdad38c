/**
 * `/recoveries`: how far requests to send again have come (§6.6). They are begun at their endpoint (endpoints/recover.ts) and change by
 * themselves. DELETE stops one that runs and forgets it.
 */
import { recoveriesCollection } from '../../../webhooks/outbound/collections.ts';
import type { CollectionOperation } from '../../collection/resources.ts';
import { type ServedCollection, type Serving, serveCollection } from '../../collection/serving.ts';

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read', 'remove']);

export function recoveryResources(serving: Serving): ServedCollection {
  return serveCollection(serving, recoveriesCollection, { announced: false, operations });
}

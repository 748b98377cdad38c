/** `/audit`: what happened to accounts and keys, as a collection that administrators read and nobody writes to. */
import type { CollectionOperation } from '../../collection/resources.ts';
import { type ServedCollection, type Serving, serveCollection } from '../../collection/serving.ts';
import { administratorsOnly } from '../administrators-only.ts';
import { auditCollection } from '../collections.ts';

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read']);

export function auditResources(serving: Serving): ServedCollection {
  return serveCollection(serving, auditCollection, {
    announced: false,
    listPermission: administratorsOnly,
    operations,
  });
}

/**
 * `/keys`: API keys as a collection of their own (§5.2). One's own for everybody with a credential that may write, all of them for
 * administrators. A key is made by create.ts; what it may do is fixed then, so there is no PUT.
 */
import type { CollectionOperation } from '../../collection/resources.ts';
import { revised } from '../../collection/revised.ts';
import { type ServedCollection, type Serving, serveCollection } from '../../collection/serving.ts';
import type { Resource } from '../../resource.ts';
import { keysCollection } from '../collections.ts';
import { accompanyKey } from './accompany.ts';
import { createKeyOperation } from './create.ts';
import { reviseExpiry } from './expiry.ts';
import type { KeyResourcesOptions } from './options.ts';
import { rotateResource } from './rotate.ts';

const operations: ReadonlySet<CollectionOperation> = new Set([
  'list',
  'create',
  'query',
  'read',
  'patch',
  'remove',
  'bulk-delete',
]);

export function keyResources(options: KeyResourcesOptions, serving: Serving): ServedCollection {
  const { store, clock } = serving;
  const plain = serveCollection(serving, keysCollection, {
    announced: false,
    accompany: accompanyKey(options, store),
    create: (served) => createKeyOperation(options, served),
    operations,
  });
  const revise = reviseExpiry(store, clock);
  return {
    ...plain,
    resources: [
      ...plain.resources.map((resource) => withPatch(resource, revise)),
      rotateResource(options, plain.served),
    ],
  };
}

/** Carried out later it would not be known by which credential it came, and so not how long a life that one may give. */
function withPatch(resource: Resource, revise: ReturnType<typeof reviseExpiry>): Resource {
  const patch = resource.operations.get('PATCH');
  if (patch === undefined) return resource;
  const atOnce = { ...revised(patch, revise), asynchronous: false };
  return { ...resource, operations: new Map([...resource.operations, ['PATCH', atOnce]]) };
}

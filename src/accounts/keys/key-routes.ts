/**
 * `/keys`: API keys as a collection of their own (§5.2). One's own for everybody with a credential that may write, all of them for
 * administrators. A key is made by create-key.ts; what it may do is fixed then, so there is no PUT.
 */

import type { CollectionOperation } from '../../kernel/documentation.ts';
import type { Resource } from '../../kernel/resource.ts';
import { revised } from '../../resources/collection/revised.ts';
import type { Accompaniment, Written } from '../../resources/collection/served.ts';
import { type ServedCollection, type Serving, serveCollection } from '../../resources/collection/serving.ts';
import type { Change, NextRow, Row, Store } from '../../store/store.ts';
import { keysCollection } from '../account-collections.ts';
import { factOfAsk } from '../fact-of-ask.ts';
import { createKeyOperation } from './create-key.ts';
import { reviseExpiry } from './grant.ts';
import type { KeyResourcesOptions } from './key-route-options.ts';
import { grantOf, type Key, keySecretChange } from './key-rows.ts';
import { createSecretsOfKey } from './keys-of-owner.ts';
import { rotateResource } from './rotate-key.ts';

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
    documentation: {
      names: { singular: 'Key', plural: 'Keys', one: 'an API key', many: 'API keys' },
      idPrefix: 'key_',
    },
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

/**
 * What goes with a change of a key, in one unit: a key that is revoked takes its texts along, so that it is dead from that commit on, one
 * that gets another end tells it to its texts, and the audit trail tells of every change.
 */
function accompanyKey(
  {
    audit,
    addressOf,
    generationChanges,
  }: Pick<KeyResourcesOptions, 'audit' | 'addressOf' | 'generationChanges'>,
  store: Store,
): (written: Written) => Promise<Accompaniment> {
  const secrets = createSecretsOfKey(store);

  async function consequences(
    id: string,
    before: Row | undefined,
    next: NextRow | null,
  ): Promise<readonly Change[]> {
    if (next === null) return [...(await secrets.removal(id)), ...generationChanges()];
    const after = JSON.parse(next.doc) as Key;
    const stood = before === undefined ? undefined : (JSON.parse(before.doc) as Key);
    if (stood?.expiresAt === after.expiresAt) return [];
    const grant = grantOf(after, next.owner);
    return (await secrets.find(id)).map(({ digest, expiresAt, row }) => {
      const endsAt = expiresAt === null ? null : Date.parse(expiresAt);
      return keySecretChange(digest, grant, endsAt, { createdAt: row.createdAt, expect: { rev: row.rev } });
    });
  }

  return async ({ ask, id, before, next }) => {
    const type = next === null ? 'key.revoked' : 'key.changed';
    const entry = audit.entry(factOfAsk(ask, addressOf, { type, subject: id }));
    return { changes: [...(await consequences(id, before, next)), entry] };
  };
}

/**
 * The collections that the program brings itself (§5.1, §5.2): accounts, API keys and the audit trail, described like declared ones, and
 * what is particular to each, as in resources/accounts.
 */
import type { Collection } from '../../model/collection.ts';
import { type BuiltInVariant, collectionPaths } from '../collection-paths.ts';
import type { Components } from '../components.ts';
import type { CollectionLimits } from '../described.ts';
import { ref } from '../item.ts';
import { memberTraits } from '../member-traits.ts';
import type { PathDescription } from '../path-item.ts';
import { pathParameter } from '../path-parameter.ts';
import { builtInNames } from '../schema-names.ts';
import { gateOf } from '../traits.ts';
import { type AccountLimits, takenContent } from './account-schemas.ts';
import { actionDescription } from './action.ts';

export type BuiltInCollections = {
  readonly users: Collection;
  readonly keys: Collection;
  readonly audit: Collection;
};

export type BuiltInOptions = {
  readonly collections: BuiltInCollections;
  readonly base: string;
  readonly limits: CollectionLimits & AccountLimits;
  readonly components: Components;
};

const administrators = gateOf([['administrator', 'read']]);

export function builtInPaths(options: BuiltInOptions): readonly PathDescription[] {
  return [...userPaths(options), ...keyPaths(options), ...auditPaths(options)];
}

function userPaths({ collections, base, limits, components }: BuiltInOptions): readonly PathDescription[] {
  const { users } = collections;
  const gates = { list: administrators, create: administrators, bulkDelete: administrators };
  const path = `${base}/users`;
  return [
    ...collectionPaths(users, builtInNames.users, base, limits, components, { idPrefix: 'usr_', gates }),
    {
      path: `${path}/{id}/password`,
      name: 'UserPassword',
      noun: 'the password of an account',
      parameters: [pathParameter('id', 'Of the account.')],
      operations: [
        actionDescription(
          {
            id: 'setUserPassword',
            tag: users.name,
            summary: 'Set the password of an account',
            description:
              'Administrators only. Ends all sessions of the account and makes the codes void that were mailed to it.',
            takes: ['PasswordSet', takenContent(limits).PasswordSet],
            traits: { gate: administrators, mayBeMissing: true },
            codes: ['validation_failed'],
          },
          components,
        ),
      ],
    },
  ];
}

/** A key as it is answered when it is made or rotated. */
const madeKey = {
  allOf: [
    ref('schemas', builtInNames.keys.singular),
    {
      type: 'object',
      properties: { key: { type: 'string', description: 'The key itself. It is shown this once.' } },
      required: ['key'],
    },
  ],
};
const madeKeyExample = {
  id: 'key_01k1jx7v2mh5s8b4c9d0e6f3ga',
  name: 'Nightly import',
  kind: 'secret',
  scopes: ['read', 'write'],
  prefix: 'sk_AbCd',
  createdAt: '2026-08-01T09:30:00.000Z',
  updatedAt: '2026-08-01T09:30:00.000Z',
  key: 'sk_AbCd...',
};

function keyPaths({ collections, base, limits, components }: BuiltInOptions): readonly PathDescription[] {
  const { keys } = collections;
  const taken = takenContent(limits);
  const create = actionDescription(
    {
      id: 'createKey',
      tag: keys.name,
      summary: 'Make an API key',
      description:
        'The answer shows the key, this once; what is kept is its digest. A key that an account makes acts for that account. A repetition under one Idempotency-Key with the same credential shows it again.',
      takes: ['KeyCreation', taken.KeyCreation],
      answer: madeKey,
      answerExample: madeKeyExample,
      creates: true,
      traits: { gate: gateOf([[keys.access.create, 'create']]), idempotent: true },
      codes: ['forbidden', 'validation_failed'],
    },
    components,
  );
  const variant: BuiltInVariant = {
    idPrefix: 'key_',
    operations: new Set(['list', 'create', 'query', 'read', 'patch', 'delete', 'bulkDelete']),
    create,
  };
  const { gate, mayBeMissing, mayBeHidden, mayBeClosed } = memberTraits(keys, 'update');
  return [
    ...collectionPaths(keys, builtInNames.keys, base, limits, components, variant),
    {
      path: `${base}/keys/{id}/rotate`,
      name: 'KeyRotation',
      noun: 'the rotation of an API key',
      parameters: [pathParameter('id', 'Of the key.')],
      operations: [
        actionDescription(
          {
            id: 'rotateKey',
            tag: keys.name,
            summary: 'Give an API key a new text',
            description:
              'The answer shows it, this once. The text that it replaces is dead at once, or after `overlapSeconds`.',
            takes: ['KeyRotation', taken.KeyRotation],
            contentOptional: true,
            answer: madeKey,
            answerExample: madeKeyExample,
            traits: { gate, mayBeMissing, mayBeHidden, mayBeClosed },
            codes: ['forbidden', 'validation_failed'],
          },
          components,
        ),
      ],
    },
  ];
}

function auditPaths({ collections, base, limits, components }: BuiltInOptions): readonly PathDescription[] {
  return collectionPaths(collections.audit, builtInNames.audit, base, limits, components, {
    idPrefix: 'aud_',
    operations: new Set(['list', 'query', 'read']),
    gates: { list: administrators },
  });
}

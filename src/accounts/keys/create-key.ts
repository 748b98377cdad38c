/**
 * POST to `/keys` (§5.2): makes a key and shows it, this once. Under an Idempotency-Key the answer is kept encrypted, and whoever asked sees it
 * again. Like every action it takes no part in respond-async.
 *
 * A key made by an account acts for the account. One made with the administrator key is a principal of its own, and so is whatever
 * that key makes: its owner is the first of them.
 */
import { Type } from 'typebox';
import { actionOperation, type Done, madeBy } from '../../kernel/action.ts';
import { representationOf } from '../../kernel/documentation.ts';
import type { Ask, Operation } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import { type Known, operatorId } from '../../model/principal.ts';
import { nextRow } from '../../resources/collection/row.ts';
import type { Served } from '../../resources/collection/served.ts';
import { keysCollection } from '../account-collections.ts';
import { factOfAsk } from '../fact-of-ask.ts';
import { grantKey, type Wanted } from './grant.ts';
import type { KeyResourcesOptions } from './key-route-options.ts';
import { digestOfKey, grantOf, keySecretChange, makeKey, prefixOfKey } from './key-rows.ts';

const schema = Type.Pick(keysCollection.schema, ['name', 'kind', 'scopes', 'tunnel', 'expiresAt']);

export function createKeyOperation(options: KeyResourcesOptions, served: Served): Operation {
  return actionOperation(
    {
      id: 'createKey',
      summary: 'Create an API key',
      description:
        'Only this response shows the key; Comity stores its digest. A key that an account creates acts for that account. A repeated request with the same Idempotency-Key and the same credential shows the key again.',
      input: {
        name: 'KeyCreation',
        schema,
        example: { name: 'Nightly import', kind: 'secret', scopes: ['read', 'write'] },
      },
      output: madeKey,
      answers: 'created',
      codes: ['forbidden'],
      idempotent: 'sealed',
      permission: (principal) => permission(keysCollection.access.create, 'create', principal),
      handler: (ask, input) => create(options, served, ask, input as Wanted & { readonly name: string }),
    },
    options.limits,
  );
}

const madeAt = '2026-08-01T09:30:00.000Z';

/** A key as it is answered when it is made or rotated. */
export const madeKey = {
  schema: {
    allOf: [
      representationOf(keysCollection),
      {
        type: 'object',
        properties: { key: { type: 'string', description: 'The key. Only this response shows it.' } },
        required: ['key'],
      },
    ],
  },
  example: {
    id: 'key_01k1jx7v2mh5s8b4c9d0e6f3ga',
    name: 'Nightly import',
    kind: 'secret',
    scopes: ['read', 'write'],
    prefix: 'sk_AbCd',
    createdAt: madeAt,
    updatedAt: madeAt,
    key: 'sk_AbCd...',
  },
};

async function create(
  options: KeyResourcesOptions,
  served: Served,
  ask: Ask,
  wanted: Wanted & { readonly name: string },
): Promise<Done> {
  const { known } = ask;
  if (known === undefined || known.scheme === 'issuer') return { refused: { code: 'forbidden', message } };
  const at = served.clock();
  const granted = await grantKey(served.store, known, wanted, at);
  if (!granted.ok) return { refused: { code: 'validation_failed', errors: granted.errors } };
  const { scopes, tunnel, expiresAt } = granted;
  const { name, kind } = wanted;
  const text = makeKey(kind, options.random);
  const id = `key_${served.newId()}`;
  const maker = known.key === null ? {} : { madeBy: known.key };
  const expiry = expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() };
  const hosts = tunnel === undefined ? {} : { tunnel };
  const row = nextRow(served, {
    id,
    fields: { name, kind, scopes, ...hosts, ...expiry, prefix: prefixOfKey(text), ...maker },
    owner: ownerOf(known, id),
    createdAt: at,
    updatedAt: at,
    deletedAt: null,
  });
  const digest = digestOfKey(text).toString('base64url');
  const expect = { absent: true } as const;
  const changes = [
    { table: served.collection.name, id, expect, next: row },
    keySecretChange(digest, grantOf(JSON.parse(row.doc), row.owner), null, { createdAt: at, expect }),
    options.audit.entry(
      factOfAsk(ask, options.addressOf, { type: 'key.created', subject: id, detail: { kind, scopes } }),
    ),
  ];
  const done = { content: { ...JSON.parse(row.doc), key: text }, created: `${served.path}/${id}` };
  const companions = ask.companions.map((companion) => companion(madeBy(done)));
  const commit = await served.store.commit({ changes: [...changes, ...companions], events: [] });
  if (commit.outcome === 'committed') return done;
  // A companion that was superseded means that another process took this request over: it answers, not we.
  if (commit.change >= changes.length) return { refused: { code: 'idempotency_key_in_use' } };
  throw new Error(`the new key could not be stored: ${commit.outcome}`);
}

const message = 'only accounts and keys of this server can create keys, not tokens of other issuers';

function ownerOf(known: Known, id: string): string {
  return known.principal.id === operatorId ? id : known.principal.id;
}

/**
 * `/keys`: API keys as a collection (§5.2): a caller's own for everybody with a credential that may write, all of them for administrators.
 * The rights of a key are fixed when it is created, so there is no PUT.
 *
 * - POST creates a key and shows it once. Under an Idempotency-Key the response is kept encrypted, and the same caller sees it again. A
 *   key that an account creates acts for the account. One created with the administrator key is a principal of its own, and owns the keys
 *   that it creates.
 * - POST to `/keys/{id}/rotate` replaces the secret. Earlier ones end immediately, or after `overlapSeconds`; one that would have ended
 *   sooner still does.
 */
import { Type } from 'typebox';
import { actionOperation, actionResource, type Done, madeBy } from '../../kernel/action.ts';
import {
  type CollectionOperation,
  memberwiseOperations,
  representationOf,
} from '../../kernel/documentation.ts';
import type { Ask, Operation, Resource } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import { idFor, idPrefixes } from '../../model/id.ts';
import { type Known, operatorId } from '../../model/principal.ts';
import { onMember } from '../../resources/collection/member.ts';
import { nextRow, timeAfter } from '../../resources/collection/row.ts';
import { type ServedCollection, serveCollection } from '../../resources/collection/serve-collection.ts';
import type {
  Accompaniment,
  Served,
  Serving,
  Written,
} from '../../resources/collection/served-collection.ts';
import { revised } from '../../resources/collection/write-operations.ts';
import { tryCommit } from '../../store/lines.ts';
import { type Change, type NextRow, Overtaken, type Row, type Store } from '../../store/store.ts';
import type { AccountParts, EndpointGeneration } from '../account-parts.ts';
import { keySecretsTable, keysCollection } from '../account-tables.ts';
import { factOfAsk } from '../audit.ts';
import { exceeds, grantKey, reviseExpiry, type Wanted } from './grant.ts';
import {
  createSecretsOfKey,
  digestOfKey,
  grantOf,
  type Key,
  type KeyGrant,
  keySecretChange,
  makeKey,
  prefixOfKey,
  type SecretsOfKey,
  type StoredSecret,
  secretsOfKeyMax,
} from './key-rows.ts';

const operations: ReadonlySet<CollectionOperation> = new Set([...memberwiseOperations, 'bulk-delete']);

export function keyResources(
  parts: AccountParts,
  endpoints: EndpointGeneration,
  serving: Serving,
): ServedCollection {
  const { store, clock } = serving;
  const plain = serveCollection(serving, keysCollection, {
    announced: false,
    accompany: accompanyKey(parts, endpoints, store),
    create: (served) => createKeyOperation(parts, served),
    operations,
    documentation: {
      names: { singular: 'Key', plural: 'Keys', one: 'an API key', many: 'API keys' },
      audience: 'operator',
      idPrefix: idPrefixes.key,
    },
  });
  const revise = reviseExpiry(store, clock);
  return {
    ...plain,
    resources: [
      ...plain.resources.map((resource) => withPatch(resource, revise)),
      rotateResource(parts, plain.served),
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
 * that gets another end gives it to its texts, and the audit trail has an entry for every change.
 */
function accompanyKey(
  { audit, addressOf }: AccountParts,
  { generationChanges }: EndpointGeneration,
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

const creationSchema = Type.Pick(keysCollection.schema, ['name', 'kind', 'scopes', 'tunnel', 'expiresAt']);

export function createKeyOperation(parts: AccountParts, served: Served): Operation {
  return actionOperation(
    {
      id: 'createKey',
      summary: 'Create an API key',
      description:
        'Only this response shows the key; Comity stores its digest. A key that an account creates acts for that account. A repeated request with the same Idempotency-Key and the same credential shows the key again.',
      input: {
        name: 'KeyCreation',
        schema: creationSchema,
        example: { name: 'Nightly import', kind: 'secret', scopes: ['read', 'write'] },
      },
      output: madeKey,
      answers: 'created',
      codes: ['forbidden'],
      idempotent: 'sealed',
      permission: (principal) => permission(keysCollection.access.create, 'create', principal),
      handler: (ask, input) => create(parts, served, ask, input as Wanted & { readonly name: string }),
    },
    parts.settings,
  );
}

const madeAt = '2026-08-01T09:30:00.000Z';

/** A key as it is answered when it is made or rotated. */
const madeKey = {
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
  { random, audit, addressOf }: AccountParts,
  served: Served,
  ask: Ask,
  wanted: Wanted & { readonly name: string },
): Promise<Done> {
  const { known } = ask;
  if (known === undefined || known.scheme === 'issuer')
    return { refused: { code: 'forbidden', message: issuerMessage } };
  const at = served.clock();
  const granted = await grantKey(served.store, known, wanted, at);
  if (!granted.ok) return { refused: { code: 'validation_failed', errors: granted.errors } };
  const { scopes, tunnel, expiresAt } = granted;
  const { name, kind } = wanted;
  const text = makeKey(kind, random);
  const id = idFor('key', served.newId);
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
    audit.entry(factOfAsk(ask, addressOf, { type: 'key.created', subject: id, detail: { kind, scopes } })),
  ];
  const done = { content: { ...JSON.parse(row.doc), key: text }, created: `${served.path}/${id}` };
  const companions = ask.companions.map((companion) => companion(madeBy(done)));
  const commit = await served.store.commit({ changes: [...changes, ...companions], events: [] });
  if (commit.outcome === 'committed') return done;
  // A companion that was superseded means that another process took this request over: it answers, not we.
  if (commit.change >= changes.length) return { refused: { code: 'idempotency_key_in_use' } };
  throw new Error(`the new key could not be stored: ${commit.outcome}`);
}

const issuerMessage = 'only accounts and keys of this server can create keys, not tokens of other issuers';

function ownerOf(known: Known, id: string): string {
  return known.principal.id === operatorId ? id : known.principal.id;
}

function rotateResource(parts: AccountParts, served: Served): Resource {
  const rotationSchema = Type.Object({
    overlapSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: parts.settings.keyOverlapSecondsMax,
        default: 0,
        description: 'Seconds for which the replaced key stays valid beside the new one.',
      }),
    ),
  });
  const secrets = createSecretsOfKey(served.store);
  return actionResource(
    {
      ...onMember(served, 'rotate', 'update', 'Id of the key.'),
      id: 'rotateKey',
      summary: 'Rotate an API key',
      description:
        'Replaces the secret of the key; its id and its members stay. Only this response shows the new one. The previous one is revoked immediately, or after `overlapSeconds`.',
      input: {
        name: 'KeyRotation',
        schema: rotationSchema,
        example: { overlapSeconds: 3600 },
        optional: true,
      },
      output: madeKey,
      codes: ['forbidden'],
      changes: ({ captures }) => ({ table: served.collection.name, id: captures[0] ?? '' }),
      handler: (ask, { overlapSeconds = 0 }, { row }) => {
        if (row === undefined) throw new Error('the rotation of a key requires its row');
        return rotate(parts, served, secrets, { ask, row, overlapMs: overlapSeconds * 1000 });
      },
    },
    parts.settings,
  );
}

async function rotate(
  { random, audit, addressOf }: AccountParts,
  served: Served,
  secrets: SecretsOfKey,
  { ask, row, overlapMs }: { readonly ask: Ask; readonly row: Row; readonly overlapMs: number },
): Promise<Done> {
  const at = timeAfter(served.clock, row.updatedAt);
  const key = JSON.parse(row.doc) as Key;
  const refused = await refusal(served, ask, key, at);
  if (refused !== undefined) return refused;
  const text = makeKey(key.kind, random);
  const next = rotatedRow(served, row, key, text, at);
  const stored = await secrets.find(key.id);
  const grant = grantOf(key, row.owner);
  const changes = [
    { table: served.collection.name, id: key.id, expect: { rev: row.rev }, next },
    ...endingChanges(stored, grant, at, overlapMs),
    keySecretChange(digestOfKey(text).toString('base64url'), grant, null, {
      createdAt: at,
      expect: { absent: true },
    }),
    audit.entry(
      factOfAsk(ask, addressOf, {
        type: 'key.rotated',
        subject: key.id,
        detail: { overlapSeconds: overlapMs / 1000 },
      }),
    ),
  ];
  const commit = await tryCommit(served.store, { changes, events: [] });
  if (commit instanceof Overtaken) return commit;
  return { content: { ...JSON.parse(next.doc), key: text } };
}

async function refusal(served: Served, ask: Ask, key: Key, at: number): Promise<Done | undefined> {
  if (ask.known !== undefined && (await exceeds(served.store, ask.known, key))) {
    const message = 'a key cannot rotate a key that has more rights or expires later than itself';
    return { refused: { code: 'forbidden', message } };
  }
  if (key.expiresAt === undefined || Date.parse(key.expiresAt) > at) return undefined;
  return { refused: { code: 'validation_failed', message: 'the key has expired; set expiresAt first' } };
}

function rotatedRow(served: Served, row: Row, key: Key, text: string, at: number) {
  const { id, createdAt, updatedAt, ...fields } = { ...key, prefix: prefixOfKey(text) };
  return nextRow(served, {
    id,
    fields,
    owner: row.owner,
    createdAt: row.createdAt,
    updatedAt: at,
    deletedAt: null,
  });
}

/** Earlier texts end after the overlap, at once those that end first where there would be too many. */
function endingChanges(
  stored: readonly StoredSecret[],
  grant: KeyGrant,
  at: number,
  overlapMs: number,
): readonly Change[] {
  const ends = stored
    .map(({ digest, expiresAt, row }) => ({
      digest,
      row,
      endsAt: Math.min(expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt), at + overlapMs),
    }))
    .sort((one, other) => other.endsAt - one.endsAt);
  return ends.map(({ digest, row, endsAt }, index) => {
    const expect = { rev: row.rev };
    if (endsAt <= at || index >= secretsOfKeyMax - 1) {
      return { table: keySecretsTable, id: digest, expect, next: null };
    }
    return keySecretChange(digest, grant, endsAt, { createdAt: row.createdAt, expect });
  });
}

/**
 * POST to `/keys/{id}/rotate` (§5.2): a new text for the same key, shown this once. Earlier ones are dead at once, or after
 * `overlapSeconds`; one that would have ended sooner still does.
 */
import { Type } from 'typebox';
import { actionResource, type Done } from '../../kernel/action.ts';
import type { Ask, Resource } from '../../kernel/resource.ts';
import { nextRow, timeAfter } from '../../resources/collection/row.ts';
import type { Served } from '../../resources/collection/served.ts';
import { onMember } from '../../resources/collection/standing.ts';
import { tryCommit } from '../../store/lines.ts';
import { type Change, Overtaken, type Row } from '../../store/store.ts';
import { keySecretsTable } from '../account-tables.ts';
import { factOfAsk } from '../fact-of-ask.ts';
import { madeKey } from './create-key.ts';
import { exceeds } from './grant.ts';
import type { KeyResourcesOptions } from './key-route-options.ts';
import {
  digestOfKey,
  grantOf,
  type Key,
  type KeyGrant,
  keySecretChange,
  makeKey,
  prefixOfKey,
} from './key-rows.ts';
import {
  createSecretsOfKey,
  type SecretsOfKey,
  type StandingSecret,
  secretsOfKeyMax,
} from './keys-of-owner.ts';

export function rotateResource(options: KeyResourcesOptions, served: Served): Resource {
  const schema = Type.Object({
    overlapSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: options.keyOverlapSecondsMax,
        default: 0,
        description: 'Seconds for which the replaced key stays valid beside the new one.',
      }),
    ),
  });
  const secrets = createSecretsOfKey(served.store);
  return actionResource(
    {
      ...onMember(served, 'rotate', 'update', 'Id of the key.'),
      noun: 'the rotation of an API key',
      id: 'rotateKey',
      summary: 'Rotate an API key',
      description:
        'Replaces the secret of the key; its id and its members stay. Only this response shows the new one. The previous one is revoked immediately, or after `overlapSeconds`.',
      input: { name: 'KeyRotation', schema, example: { overlapSeconds: 3600 }, optional: true },
      output: madeKey,
      codes: ['forbidden'],
      changes: ({ captures }) => ({ table: served.collection.name, id: captures[0] ?? '' }),
      handler: (ask, { overlapSeconds = 0 }, { row }) => {
        if (row === undefined) throw new Error('the rotation of a key requires its row');
        return rotate(options, served, secrets, { ask, row, overlapMs: overlapSeconds * 1000 });
      },
    },
    options.limits,
  );
}

async function rotate(
  options: KeyResourcesOptions,
  served: Served,
  secrets: SecretsOfKey,
  { ask, row, overlapMs }: { readonly ask: Ask; readonly row: Row; readonly overlapMs: number },
): Promise<Done> {
  const at = timeAfter(served.clock, row.updatedAt);
  const key = JSON.parse(row.doc) as Key;
  const refused = await refusal(served, ask, key, at);
  if (refused !== undefined) return refused;
  const text = makeKey(key.kind, options.random);
  const next = rotatedRow(served, row, key, text, at);
  const standing = await secrets.find(key.id);
  const grant = grantOf(key, row.owner);
  const changes = [
    { table: served.collection.name, id: key.id, expect: { rev: row.rev }, next },
    ...endingChanges(standing, grant, at, overlapMs),
    keySecretChange(digestOfKey(text).toString('base64url'), grant, null, {
      createdAt: at,
      expect: { absent: true },
    }),
    options.audit.entry(
      factOfAsk(ask, options.addressOf, {
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
  standing: readonly StandingSecret[],
  grant: KeyGrant,
  at: number,
  overlapMs: number,
): readonly Change[] {
  const ends = standing
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

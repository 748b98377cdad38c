/**
 * POST to `/keys` (§5.2): makes a key and shows it, this once. Under an Idempotency-Key the answer is kept encrypted, and whoever asked sees it
 * again. Like every action it takes no part in respond-async.
 *
 * A key made by an account acts for the account. One made with the administrator key is a principal of its own, and so is whatever
 * that key makes: its owner is the first of them.
 */
import { Type } from 'typebox';
import { grantKey, type Wanted } from '../../../auth/keys/grant.ts';
import { grantOf, keySecretChange } from '../../../auth/keys/key-rows.ts';
import { digestOfKey, makeKey, prefixOfKey } from '../../../auth/keys/key-text.ts';
import { permission } from '../../../model/access.ts';
import type { Known } from '../../../model/credential.ts';
import { operatorId } from '../../../model/principal.ts';
import { actionOperation, type Done, madeBy } from '../../action/action.ts';
import { nextRow } from '../../collection/row.ts';
import type { Served } from '../../collection/served.ts';
import type { Ask, Operation } from '../../resource.ts';
import { keysCollection } from '../collections.ts';
import { factOfAsk } from '../fact-of-ask.ts';
import type { KeyResourcesOptions } from './options.ts';

const schema = Type.Pick(keysCollection.schema, ['name', 'kind', 'scopes', 'tunnel', 'expiresAt']);

export function createKeyOperation(options: KeyResourcesOptions, served: Served): Operation {
  const operation = actionOperation({
    path: served.path,
    schema,
    limits: options.limits,
    permission: (principal) => permission(keysCollection.access.create, 'create', principal),
    act: (ask, content) => create(options, served, ask, content as Wanted & { readonly name: string }),
  });
  return { ...(operation as Operation), idempotent: 'sealed' };
}

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
  throw new Error(`a new key could not be kept: ${commit.outcome}`);
}

const message = 'keys are made by accounts of this server and with its own keys';

function ownerOf(known: Known, id: string): string {
  return known.principal.id === operatorId ? id : known.principal.id;
}

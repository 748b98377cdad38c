/**
 * POST to `/endpoints/{id}/rotate-secret` (§5.6): a new secret, shown this once. The others sign beside it for `overlapSeconds`, so that a
 * receiver has time to learn it; one that would have ended sooner still does. Without an overlap this process signs with the new one alone
 * when the answer is there, and others as soon as the store tells them.
 */
import { Type } from 'typebox';
import { permission } from '../../../model/access.ts';
import { keptRow } from '../../../store/kept-row.ts';
import { rotatedSecrets } from '../../../webhooks/outbound/rotated-secrets.ts';
import { makeEndpointSecret } from '../../../webhooks/outbound/secret-text.ts';
import { type EndpointSecrets, endpointSecretsTable } from '../../../webhooks/outbound/tables.ts';
import { type ActionOptions, actionResource, type Done } from '../../action/action.ts';
import type { Served } from '../../collection/served.ts';
import { memberStanding } from '../../collection/standing.ts';
import type { Ask, Resource } from '../../resource.ts';
import type { EndpointResourcesOptions } from './options.ts';
import { inForce } from './with-generation.ts';

/** How often a rotation that lost a race begins again. */
const attemptsMax = 8;

export function rotateSecretResource(
  options: EndpointResourcesOptions,
  served: Served,
  limits: ActionOptions['limits'],
): Resource {
  const schema = Type.Object({
    overlapSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: options.secretOverlapSecondsMax })),
  });
  return actionResource({
    path: `${served.path}/{id}/rotate-secret`,
    schema,
    contentOptional: true,
    limits,
    permission: (principal) => permission(served.collection.access.update, 'update', principal),
    standing: (ask) => memberStanding(served, ask, 'update'),
    act: (ask, { overlapSeconds = 0 }) => rotate(options, served, ask, (overlapSeconds as number) * 1000),
  });
}

async function rotate(
  options: EndpointResourcesOptions,
  served: Served,
  ask: Ask,
  overlapMs: number,
): Promise<Done> {
  const { store, clock } = served;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const { exists, permitted, row, id } = await memberStanding(served, ask, 'update');
    const kept = await store.read(endpointSecretsTable, id);
    // Removed since the request was let through.
    if (!exists || !permitted || row === undefined || kept === undefined) {
      return { refused: { code: 'not_found' } };
    }
    const at = clock();
    const secret = makeEndpointSecret(options.random);
    const stood = JSON.parse(kept.doc) as EndpointSecrets;
    const rotated: EndpointSecrets = {
      ...stood,
      secrets: rotatedSecrets(stood.secrets, secret, at, overlapMs),
    };
    const next = keptRow(JSON.stringify(rotated), kept.owner, kept.createdAt, Math.max(at, kept.updatedAt));
    const change = { table: endpointSecretsTable, id, expect: { rev: kept.rev }, next };
    const commit = await store.commit({ changes: [change], events: [] });
    if (commit.outcome !== 'committed') continue;
    await inForce(options.directory);
    return { content: { ...JSON.parse(row.doc), secret } };
  }
  return { refused: { code: 'unavailable' } };
}

/**
 * POST to `/endpoints/{id}/rotate-secret` (§5.6): a new secret, shown this once. The others sign beside it for `overlapSeconds`, so that a
 * receiver has time to learn it; one that would have ended sooner still does. Without an overlap this process signs with the new one alone
 * when the answer is there, and others as soon as the store tells them.
 */
import { Type } from 'typebox';
import { permission } from '../../../model/access.ts';
import { keptRow } from '../../../store/kept-row.ts';
import { tryCommit } from '../../../store/lines.ts';
import { Overtaken } from '../../../store/store.ts';
import { rotatedSecrets } from '../../../webhooks/outbound/rotated-secrets.ts';
import { makeEndpointSecret } from '../../../webhooks/outbound/secret-text.ts';
import { type EndpointSecrets, endpointSecretsTable } from '../../../webhooks/outbound/tables.ts';
import { type ActionOptions, actionResource, type Done } from '../../action/action.ts';
import type { Served } from '../../collection/served.ts';
import { type MemberStanding, memberStanding } from '../../collection/standing.ts';
import type { Resource } from '../../resource.ts';
import type { EndpointResourcesOptions } from './options.ts';

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
    changes: ({ captures }) => ({ table: endpointSecretsTable, id: captures[0] ?? '' }),
    act: (_ask, { overlapSeconds = 0 }, standing) =>
      rotate(options, served, standing, (overlapSeconds as number) * 1000),
  });
}

async function rotate(
  options: EndpointResourcesOptions,
  served: Served,
  { row, id }: MemberStanding,
  overlapMs: number,
): Promise<Done> {
  const { store, clock } = served;
  const kept = await store.read(endpointSecretsTable, id);
  // Removed since the request was let through.
  if (row === undefined || kept === undefined) return { refused: { code: 'not_found' } };
  const at = clock();
  const secret = makeEndpointSecret(options.random);
  const stood = JSON.parse(kept.doc) as EndpointSecrets;
  const rotated: EndpointSecrets = {
    ...stood,
    secrets: rotatedSecrets(stood.secrets, secret, at, overlapMs),
  };
  const next = keptRow(JSON.stringify(rotated), kept.owner, kept.createdAt, Math.max(at, kept.updatedAt));
  const change = { table: endpointSecretsTable, id, expect: { rev: kept.rev }, next };
  const changes = [change, ...options.directory.generationChanges()];
  const commit = await tryCommit(store, { changes, events: [] });
  if (commit instanceof Overtaken) return commit;
  return { content: { ...JSON.parse(row.doc), secret } };
}

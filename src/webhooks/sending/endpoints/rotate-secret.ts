/**
 * POST to `/endpoints/{id}/rotate-secret` (§5.6): creates a secret, shown once. Older secrets sign beside it for
 * `overlapSeconds`, so that a receiver has time to learn it; one that would end sooner still does. Without an overlap,
 * this process signs with the new one alone from its response on, and others as soon as the store notifies them.
 */
import { Type } from 'typebox';
import { actionResource, type Done } from '../../../kernel/action.ts';
import { representationOf } from '../../../kernel/documentation.ts';
import type { Resource } from '../../../kernel/resource.ts';
import type { Principal } from '../../../model/principal.ts';
import { type MemberStanding, onMember } from '../../../resources/collection/member.ts';
import type { Served } from '../../../resources/collection/served-collection.ts';
import { tryCommit } from '../../../store/lines.ts';
import { keptRow, Overtaken } from '../../../store/store.ts';
import { makeEndpointSecret, rotatedSecrets } from '../../secrets.ts';
import type { SendingParts } from '../sending-parts.ts';
import { type EndpointSecrets, endpointSecretsTable, endpointsCollection } from '../sending-tables.ts';
import { administrators, hasRightsOf, isPortalSession } from './endpoint-owner.ts';

export function rotateSecretResource(parts: SendingParts, served: Served): Resource {
  const { settings } = parts;
  const schema = Type.Object({
    overlapSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: settings.secretOverlapSecondsMax,
        description: 'Seconds for which the replaced secrets keep signing beside the new one. Default: 0.',
      }),
    ),
  });
  return actionResource(
    {
      ...onMember(served, 'rotate-secret', 'update', 'Id of the endpoint.'),
      id: 'rotateSecret',
      summary: 'Rotate the secret of an endpoint',
      description:
        'Only this response shows the new secret. While replaced secrets still sign, every delivery has a signature for each secret.',
      input: { name: 'SecretRotation', schema, example: { overlapSeconds: 3600 }, optional: true },
      output: madeEndpoint,
      codes: [],
      changes: ({ captures }) => ({ table: endpointSecretsTable, id: captures[0] ?? '' }),
      handler: ({ principal }, { overlapSeconds = 0 }, standing) =>
        rotate(parts, served, { standing, principal, overlapMs: overlapSeconds * 1000 }),
    },
    settings,
  );
}

const madeAt = '2026-08-01T09:30:00.000Z';

/** An endpoint as returned when it is created and when its secret is rotated. */
export const madeEndpoint = {
  schema: {
    allOf: [
      representationOf(endpointsCollection),
      {
        type: 'object',
        properties: {
          secret: {
            type: 'string',
            description: 'The secret that signs the deliveries. Only this response shows it.',
          },
        },
        required: ['secret'],
      },
    ],
  },
  example: {
    id: 'ep_01k1jx7v2mh5s8b4c9d0e6f3ga',
    url: 'https://shop.example/hooks',
    events: ['products.*'],
    scheme: 'standard',
    status: 'enabled',
    createdAt: madeAt,
    updatedAt: madeAt,
    secret: 'whsec_k3yOfTheEndpointInBase64ThatNobodyElseHas00',
  },
};

type Rotation = {
  readonly standing: MemberStanding;
  readonly principal: Principal;
  readonly overlapMs: number;
};

async function rotate(
  { random }: SendingParts,
  served: Served,
  { standing, principal, overlapMs }: Rotation,
): Promise<Done> {
  const { row, id } = standing;
  const { store, clock } = served;
  const kept = await store.read(endpointSecretsTable, id);
  // Removed since the request was permitted.
  if (row === undefined || kept === undefined) return { refused: { code: 'not_found' } };
  const at = clock();
  const secret = makeEndpointSecret(random);
  const current = JSON.parse(kept.doc) as EndpointSecrets;
  if (isPortalSession(principal) && !hasRightsOf(principal, current)) return administrators;
  const rotated: EndpointSecrets = {
    ...current,
    secrets: rotatedSecrets(current.secrets, secret, at, overlapMs),
  };
  const next = keptRow(JSON.stringify(rotated), kept.owner, kept.createdAt, Math.max(at, kept.updatedAt));
  const change = { table: endpointSecretsTable, id, expect: { rev: kept.rev }, next };
  const commit = await tryCommit(store, { changes: [change], events: [] });
  if (commit instanceof Overtaken) return commit;
  return { content: { ...JSON.parse(row.doc), secret } };
}

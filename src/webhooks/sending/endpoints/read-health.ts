/**
 * GET `/endpoints/{id}/health` (§6.6): since when an endpoint fails, when it would be disabled, and until when each of its secrets signs.
 * Secrets themselves are in no response.
 */
import type { Settings } from '../../../config/settings.ts';
import { actionResource } from '../../../kernel/action.ts';
import { type Item, named } from '../../../kernel/documentation.ts';
import type { Resource } from '../../../kernel/resource.ts';
import { readEndpoint } from '../../../model/endpoint.ts';
import type { Served } from '../../../resources/collection/served.ts';
import { type MemberStanding, onMember } from '../../../resources/collection/standing.ts';
import {
  type EndpointHealth,
  type EndpointSecrets,
  endpointHealthTable,
  endpointSecretsTable,
} from '../sending-tables.ts';

export function endpointHealthResource(settings: Settings, served: Served): Resource {
  return actionResource(
    {
      ...onMember(served, 'health', 'read', 'Id of the endpoint.'),
      method: 'GET',
      name: 'EndpointHealth',
      noun: 'the health of an endpoint',
      id: 'readEndpointHealth',
      summary: 'Read the health of an endpoint',
      output: { schema, example },
      mayBeMissing: true,
      codes: [],
      handler: async (_ask, _input, standing) => ({ content: await healthOf(settings, served, standing) }),
    },
    settings,
  );
}

const timeOrNull = (description: string): Item => ({
  type: ['string', 'null'],
  format: 'date-time',
  description,
});

const schema = named('EndpointHealth', {
  description: 'The health of an endpoint.',
  type: 'object',
  properties: {
    status: { enum: ['healthy', 'failing', 'disabled'] },
    failingSince: timeOrNull('The first failure after the last success; null: the last attempt succeeded.'),
    failures: { type: 'integer', description: 'Scheduled attempts that failed since then.' },
    warnedAt: timeOrNull('When its owner was warned.'),
    disablesAt: timeOrNull('The earliest time at which it is disabled, unless an attempt succeeds before.'),
    secrets: {
      type: 'array',
      description: 'Its secrets, without their values, the current one first.',
      items: {
        type: 'object',
        properties: { until: timeOrNull('When a replaced secret stops signing; null: the current one.') },
        required: ['until'],
      },
    },
  },
  required: ['status', 'failingSince', 'failures', 'warnedAt', 'disablesAt', 'secrets'],
});

const example = {
  status: 'failing',
  failingSince: '2026-08-01T09:30:00.000Z',
  failures: 4,
  warnedAt: null,
  disablesAt: '2026-08-06T09:30:00.000Z',
  secrets: [{ until: null }],
};

async function healthOf(
  { endpointDisableSeconds }: Settings,
  { store, clock }: Served,
  { row, id }: MemberStanding,
): Promise<Readonly<Record<string, unknown>>> {
  const [healthRow, secretsRow] = await Promise.all([
    store.read(endpointHealthTable, id),
    store.read(endpointSecretsTable, id),
  ]);
  const isEnabled = row !== undefined && readEndpoint(row.doc).status === 'enabled';
  const health = healthRow === undefined ? undefined : (JSON.parse(healthRow.doc) as EndpointHealth);
  const { secrets } = secretsRow === undefined ? noSecrets : (JSON.parse(secretsRow.doc) as EndpointSecrets);
  const now = clock();
  const standing = secrets.filter(({ until }) => until === null || until > now);
  return {
    status: isEnabled ? (health === undefined ? 'healthy' : 'failing') : 'disabled',
    failingSince: isoOrNull(health?.failingSince),
    failures: health?.failures ?? 0,
    warnedAt: isoOrNull(health?.warnedAt),
    disablesAt: isoOrNull(
      isEnabled && health !== undefined ? health.failingSince + endpointDisableSeconds * 1000 : null,
    ),
    secrets: standing.map(({ until }) => ({ until: isoOrNull(until) })),
  };
}

const noSecrets: Pick<EndpointSecrets, 'secrets'> = { secrets: [] };

function isoOrNull(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString();
}

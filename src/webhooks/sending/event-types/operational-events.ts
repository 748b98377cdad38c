/**
 * The program's own events about an endpoint (§6): a warning that it fails, and that it was disabled. They have no
 * collection; they belong to the endpoint's owner, and to its tenant if it has one. They contain only the origin of the
 * URL, because a path may hold a secret.
 */

import type { PlainSchema } from '../../../config/declared-schema.ts';
import { causeText, systemActor, withCause } from '../../../model/actor.ts';
import type { Endpoint } from '../../../model/endpoint.ts';
import { eventDocument, noCollection } from '../../../model/event.ts';

import type { EventEntry } from '../../../store/store.ts';

export type OperationalType = 'endpoint.failing' | 'endpoint.disabled';

/**
 * @param at milliseconds since the epoch, like `failingSince`
 * @param newId returns an id without a prefix
 */
export function operationalEvent(
  type: OperationalType,
  endpoint: Endpoint,
  owner: string | null,
  at: number,
  newId: () => string,
  failingSince?: number,
): EventEntry {
  const id = `evt_${newId()}`;
  const object = JSON.stringify({
    id: endpoint.id,
    url: new URL(endpoint.url).origin,
    status: endpoint.status,
    disabledReason: endpoint.disabledReason,
    failingSince: failingSince === undefined ? undefined : new Date(failingSince).toISOString(),
    tenant: endpoint.tenant,
  });
  const doc = withCause(eventDocument(id, type, at, object, endpoint.tenant), causeText(systemActor, null));
  return { id, type, collection: noCollection, owner, doc, createdAt: at };
}

/* Types of the program's own events about endpoints (§6), which clients may not post. */

type DescribedType = {
  readonly type: string;
  readonly description: string;
  readonly schema: PlainSchema;
  readonly sample: Readonly<Record<string, unknown>>;
};

const exampleId = 'ep_01k1jx7v2mh5s8b4c9d0e6f3ga';
const text = { type: 'string' };
const properties = {
  id: { type: 'string', description: 'Id of the endpoint.' },
  url: {
    type: 'string',
    description: 'Origin of the URL; the path is left out, because it may contain a secret.',
  },
  status: { enum: ['enabled', 'disabled'] },
  disabledReason: { enum: ['gone', 'failing'] },
  failingSince: { type: 'string', format: 'date-time' },
  tenant: text,
};

export const operationalTypes: readonly DescribedType[] = [
  {
    type: 'endpoint.failing',
    description:
      'An endpoint has accepted no delivery for so long that Comity will disable it unless a delivery succeeds.',
    schema: { type: 'object', properties, required: ['id', 'status'], additionalProperties: true },
    sample: {
      id: exampleId,
      url: 'https://shop.example',
      status: 'enabled',
      failingSince: '2026-08-01T09:30:00.000Z',
    },
  },
  {
    type: 'endpoint.disabled',
    description:
      'Comity disabled an endpoint, because it accepted no delivery for long or because it answered 410 (Gone).',
    schema: { type: 'object', properties, required: ['id', 'status'], additionalProperties: true },
    sample: { id: exampleId, url: 'https://shop.example', status: 'disabled', disabledReason: 'gone' },
  },
  {
    type: 'endpoint.test',
    description: 'A test event, which POST to `/test` of an endpoint sends to that endpoint.',
    schema: {
      type: 'object',
      properties: { id: properties.id, message: text },
      required: ['id'],
      additionalProperties: true,
    },
    sample: { id: exampleId, message: 'A test.' },
  },
];

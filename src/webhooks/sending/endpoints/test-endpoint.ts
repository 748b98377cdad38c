/**
 * POST to `/endpoints/{id}/test` (§6.6): sends an event to this endpoint alone, regardless of its patterns:
 * `endpoint.test`, or a sample of the requested type. The event is in the log, for the owner of the endpoint, and its
 * delivery is retried like any other; the 202 refers to the delivery.
 */
import { Type } from 'typebox';
import { actionResource, type Done } from '../../../kernel/action.ts';
import { representationOf } from '../../../kernel/documentation.ts';
import type { Ask, Resource } from '../../../kernel/resource.ts';
import { readEndpoint } from '../../../model/endpoint.ts';
import { eventDocument } from '../../../model/event.ts';
import type { Served } from '../../../resources/collection/served.ts';
import { memberStanding, onMember } from '../../../resources/collection/standing.ts';
import type { EventEntry, Row } from '../../../store/store.ts';
import type { SendingParts } from '../sending-parts.ts';
import { deliveriesCollection } from '../sending-tables.ts';
import { targeted, testEventId } from '../test-events.ts';
import { disabledProblem } from './revise-endpoint.ts';

const plainType = 'endpoint.test';
const schema = Type.Object({
  type: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'An event type with a sample; `/event-types` lists them. Default: `endpoint.test`.',
    }),
  ),
});

/** @param deliveries the path of the deliveries */
export function testEndpointResource(parts: SendingParts, served: Served, deliveries: string): Resource {
  return actionResource(
    {
      ...onMember(served, 'test', 'update', 'Id of the endpoint.'),
      noun: 'a test of an endpoint',
      id: 'testEndpoint',
      summary: 'Send a test event to an endpoint',
      description: 'Sends it only to this endpoint, regardless of its patterns. Location names the delivery.',
      input: { name: 'EndpointTest', schema, example: { type: plainType }, optional: true },
      output: { schema: representationOf(deliveriesCollection) },
      answers: 'queued',
      codes: ['endpoint_unavailable'],
      handler: (ask, { type = plainType }) => send(parts, served, deliveries, ask, type),
    },
    parts.settings,
  );
}

async function send(
  { store, wakes, sampleOf }: SendingParts,
  served: Served,
  path: string,
  ask: Ask,
  type: string,
): Promise<Done> {
  const { exists, permitted, row } = await memberStanding(served, ask, 'update');
  // Removed since the request was permitted.
  if (!exists || !permitted || row === undefined) return { refused: { code: 'not_found' } };
  const endpoint = readEndpoint(row.doc);
  if (endpoint.status === 'disabled') return { refused: disabledProblem };
  const object = type === plainType ? { id: endpoint.id, message: 'A test.' } : sampleOf(type, ask.principal);
  if (object === undefined) {
    const message = 'must be an event type that has a sample; GET /event-types lists them';
    return { refused: { code: 'validation_failed', errors: [{ pointer: '/type', message }] } };
  }
  const at = served.clock();
  const event = eventFor(row, testEventId(served.newId), type, object, at);
  const { newId } = served;
  const unit = targeted(event, { endpoint, owner: row.owner }, { wakes, newId });
  const [delivery] = unit.changes;
  if (delivery === undefined) throw new Error('a test requires its delivery');
  const commit = await store.commit(unit);
  if (commit.outcome !== 'committed') throw new Error(`the test could not be stored: ${commit.outcome}`);
  wakes.announce([endpoint.id], delivery.id);
  return { content: JSON.parse(delivery.next?.doc ?? '{}'), queued: `${path}/${delivery.id}` };
}

/** Without a collection, so that only the owner of the endpoint and administrators see it. */
function eventFor({ owner }: Row, id: string, type: string, object: object, at: number): EventEntry {
  const doc = eventDocument(id, type, at, JSON.stringify(object));
  return { id, type, collection: '', owner, doc, createdAt: at };
}

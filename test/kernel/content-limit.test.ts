/** Bounds on content that an operation has of its own (§2.8, §8): announced by OPTIONS, and held before anything is read. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { postEventOperation } from '../../src/webhooks/sending/events/post-event.ts';
import { servicesOver } from '../harness/services-over.ts';
import { openEmbedded } from '../harness/stores.ts';
import { askOf } from '../resources/ask.ts';
import { walkEvents } from '../webhooks/events/walked-events.ts';

const webhookContentBytesMax = 2048;
const bodyBytesMax = 4096;
const store = await openEmbedded();

test('tells by OPTIONS the bound of the method that it names the types of', async () => {
  const room = walkEvents(store, undefined, { webhookContentBytesMax, bodyBytesMax });
  const events = await room.ask('ada', 'OPTIONS', 'events');
  assert.deepEqual(
    [events.field('Max-Content-Length'), events.field('Accept-Post')],
    [String(webhookContentBytesMax), 'application/json'],
  );
  const others = await room.ask('ada', 'OPTIONS', 'deliveries');
  assert.equal(others.field('Max-Content-Length'), String(bodyBytesMax));
});

test('goes by the bound of the operation, be it less or more than that of all resources', async () => {
  const post = async (given: object, length: number) => {
    const room = walkEvents(store, undefined, given);
    const json = { type: 'invoice.paid', data: { object: { id: 'i1', note: '' } } };
    json.data.object.note = 'x'.repeat(length - JSON.stringify(json).length);
    return (await room.ask('ada', 'POST', 'events', { json })).status;
  };
  const less = { webhookContentBytesMax, bodyBytesMax };
  assert.deepEqual([await post(less, 2048), await post(less, 2049)], [202, 413]);
  const more = { webhookContentBytesMax, bodyBytesMax: 1024 };
  assert.deepEqual([await post(more, 2048), await post(more, 2049)], [202, 413]);
});

test('holds an event to its bound also without the content coding that it came in', async () => {
  const services = servicesOver(store, { settings: { webhookContentBytesMax } });
  const declared = { base: '/api/v1', collections: new Map() };
  const { understand } = postEventOperation(services, declared, new Map());
  const mediaType = { type: 'application/json', parameters: new Map() };
  const understood = await understand?.(askOf({}), new Uint8Array(webhookContentBytesMax + 1), mediaType);
  assert.equal(understood?.ok === false && understood.problem.code, 'content_too_large');
});

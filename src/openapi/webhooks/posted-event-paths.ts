/** POST of an event, and the removal of one subject's events, as in resources/webhooks/events. */
import { actionDescription } from '../accounts/action.ts';
import type { Components } from '../components.ts';
import { type Item, ref } from '../item.ts';
import { contentCodes } from '../member-traits.ts';
import type { Description } from '../operation.ts';
import type { PathDescription } from '../path-item.ts';
import { gateOf, plainRead } from '../traits.ts';
import { webhookGate } from './event-type-paths.ts';

const tag = 'events';
const administrators = gateOf([['administrator', 'read']]);
const example = {
  type: 'invoice.paid',
  data: { object: { id: 'inv_1', amount: 3950, currency: 'eur' } },
};

export function postEventDescription(components: Components): Description {
  const schema = components.add('schemas', 'EventPosting', postingSchema);
  const event = { 'application/json': { schema: ref('schemas', 'Event') } };
  return {
    id: 'postEvent',
    tag,
    summary: 'Announce an event',
    description:
      'Delivered after the answer to every endpoint that asks for it. One that comes again under its own id is the same event: 200; another under that id: 409. Where a type has a schema its object must fit it. Writes of collections are announced by themselves; administrators alone may post events of their types.',
    traits: {
      ...plainRead,
      method: 'POST',
      contentTypes: ['application/json'],
      gate: webhookGate,
      idempotent: true,
      queues: 'sometimes',
      validators: 'none',
      contentCodes,
      proposalCodes: ['field_missing', 'forbidden', 'validation_failed'],
      resultCodes: ['event_id_used', 'unavailable'],
    },
    preferences: ['return=minimal'],
    requestContent: { 'application/json': { schema, example } },
    madeFields: ['Content-Location'],
    content: { queued: event, changed: event },
  };
}

export function expungePath(base: string, components: Components): PathDescription {
  return {
    path: `${base}/events/expunge`,
    name: 'EventExpunction',
    noun: 'the removal of events',
    operations: [
      actionDescription(
        {
          id: 'expungeEvents',
          tag,
          summary: 'Remove the events of one subject',
          description:
            'Administrators only. Every event about the resource, or of the owner, leaves the log, and with it what receivers answered; what is not delivered yet never is. A bounded number at a time: `more` says to ask again.',
          takes: ['EventExpunction', { schema: expungeSchema, example: { object: 'inv_1' } }],
          answer: expungedSchema,
          answerExample: { events: 3, deliveries: 6, attempts: 6, more: false },
          traits: { gate: administrators },
          codes: [],
        },
        components,
      ),
    ],
  };
}

const postingSchema: Item = {
  description: 'An event to be announced.',
  type: 'object',
  properties: {
    type: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      pattern: '^[A-Za-z0-9_-]+(?:\\.[A-Za-z0-9_-]+)*$',
      description: '`endpoint` and what begins with `endpoint.` is kept for the program itself.',
    },
    data: {
      type: 'object',
      properties: { object: { type: 'object', description: 'What it is about.' } },
      required: ['object'],
      additionalProperties: false,
    },
    id: {
      type: 'string',
      minLength: 1,
      maxLength: 128,
      pattern: '^[A-Za-z0-9_~-]+$',
      description:
        'Sent again under the same id, it is the same event. Made by the server where it is left out.',
    },
    tenant: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      description: 'Whom it concerns. Callers of a tenant may name their own alone, and need not.',
    },
  },
  required: ['type', 'data'],
  additionalProperties: false,
};

const name: Item = { type: 'string', minLength: 1, maxLength: 255 };
const expungeSchema: Item = {
  type: 'object',
  description: 'One of the two.',
  properties: {
    object: { ...name, description: 'Id of a resource: `data.object.id` of its events.' },
    owner: { ...name, description: 'Id of an account or another principal.' },
  },
  additionalProperties: false,
};

const count: Item = { type: 'integer', minimum: 0 };
const expungedSchema: Item = {
  type: 'object',
  properties: {
    events: { ...count, description: 'Events removed.' },
    deliveries: { ...count, description: 'Deliveries that were changed.' },
    attempts: { ...count, description: 'Attempts whose answers were removed.' },
    more: { type: 'boolean', description: 'Whether to ask again.' },
  },
  required: ['events', 'deliveries', 'attempts', 'more'],
};

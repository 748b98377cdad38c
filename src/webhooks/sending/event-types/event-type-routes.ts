/**
 * `/event-types`: the types that endpoints may subscribe to, each with the schema of its object and a sample. Types of
 * collections that the caller may never read are omitted, because their samples would reveal the collection's fields.
 */

import { json, named, pageSchema, pathParameter, type Tag } from '../../../kernel/documentation.ts';
import type { Ask, Resource } from '../../../kernel/resource.ts';
import { type Permission, permission } from '../../../model/access.ts';
import { isAdministrator, type Principal, tenantOfId } from '../../../model/principal.ts';
import { eventSchema } from '../../../resources/events/event-schema.ts';
import type { QueryLimits } from '../../../resources/query/list-query.ts';
import { type DeclaredItem, declaredList } from '../../routes/declared-list.ts';
import { missing, type Shown, shown, shownResource } from '../../routes/shown-resource.ts';
import { type EventType, type EventTypes, sampleEvent } from './event-types.ts';

/** @param path `/api/v1/event-types` */
export function eventTypeResources(
  eventTypes: EventTypes,
  path: string,
  limits: QueryLimits,
): readonly Resource[] {
  const texts = new Map([...eventTypes.values()].map((type) => [type.type, textOf(type)] as const));
  const itemsFor = (principal: Principal): readonly DeclaredItem[] =>
    [...eventTypes.values()]
      .filter((type) => isTold(type, principal))
      .map(({ type }) => ({ name: type, text: texts.get(type) ?? '' }));
  const one = (ask: Ask): Shown => {
    const type = eventTypes.get(ask.captures[0] ?? '');
    if (type === undefined || !isTold(type, ask.principal)) return missing;
    return shown(texts.get(type.type) ?? '');
  };
  const list = declaredList(path, mayRead, itemsFor, limits, {
    name: 'EventTypes',
    noun: 'the event types',
    tag,
    list: {
      id: 'listEventTypes',
      summary: 'List the event types',
      description: 'Each type has the schema of its object and a sample.',
      gives: { representation: json(eventTypesSchema) },
    },
  });
  const member = shownResource(`${path}/{type}`, mayRead, one, {
    name: 'EventType',
    noun: 'an event type',
    tag,
    parameters: [pathParameter('type', 'Name of the type, such as `products.created`.')],
    read: {
      id: 'readEventType',
      summary: 'Read an event type',
      gives: { representation: json(eventTypeSchema) },
    },
  });
  return [list, member];
}

const tag: Tag = { name: 'event-types', description: 'List the event types.' };

const eventTypeSchema = named('EventType', {
  description: 'An event type.',
  type: 'object',
  properties: {
    type: { type: 'string' },
    description: { type: 'string' },
    schema: {
      type: ['object', 'null'],
      description: 'JSON Schema of `data.object`; null permits any object.',
    },
    sample: {
      anyOf: [eventSchema, { type: 'null' }],
      description: 'An example event of the type; null if Comity cannot create one.',
    },
  },
  required: ['type', 'description', 'schema', 'sample'],
});

const eventTypesSchema = pageSchema(
  'EventTypes',
  'A page of the event types that the caller may receive.',
  eventTypeSchema,
);

function mayRead(principal: Principal): Permission {
  return permission({ bearing: 'webhooks', rule: 'principal' }, 'read', principal);
}

/** Whether events of the type may ever concern the principal. A portal gets only those that have a tenant. */
export function isTold({ collection }: EventType, principal: Principal): boolean {
  if (collection === undefined || isAdministrator(principal)) return true;
  const isPortal = principal.kind === 'authenticated' && tenantOfId(principal.id) !== undefined;
  if (isPortal && collection.tenantField === undefined) return false;
  return permission(collection.access.read, 'read', principal) !== 'denied';
}

function textOf(type: EventType): string {
  const { description, schema } = type;
  const head = JSON.stringify({ type: type.type, description, schema: schema ?? null });
  return `${head.slice(0, -1)},"sample":${sampleEvent(type) ?? 'null'}}`;
}

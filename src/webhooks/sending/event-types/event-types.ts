/**
 * All described event types (§2.6, §6): the writes of each collection with the schema of its representation, the types
 * that the configuration declares, and the program's own events about endpoints. Other types may be posted too, but are
 * not listed.
 */
import { type PlainSchema, plainSchema, withDefaults } from '../../../config/declared-schema.ts';
import type { DeclaredEventType } from '../../../config/event-types.ts';
import { json, named, pageSchema, pathParameter, type Tag } from '../../../kernel/documentation.ts';
import type { Ask, Resource } from '../../../kernel/resource.ts';
import { type Permission, permission } from '../../../model/access.ts';
import { causeText, systemActor, withCause } from '../../../model/actor.ts';
import type { Collection } from '../../../model/collection.ts';
import type { Endpoint } from '../../../model/endpoint.ts';
import { type Change, eventDocument, eventType, noCollection } from '../../../model/event.ts';
import { idFor } from '../../../model/id.ts';
import { isAdministrator, type Principal, tenantOfId } from '../../../model/principal.ts';
import { eventSchema } from '../../../resources/events/event-log-routes.ts';
import type { QueryLimits } from '../../../resources/query/list-query.ts';
import type { EventEntry } from '../../../store/store.ts';
import {
  type DeclaredItem,
  declaredList,
  missing,
  type Shown,
  shown,
  shownResource,
} from '../../routes/declared-resources.ts';
import { schemaSample } from './schema-sample.ts';

export type EventType = {
  /** `products.created` */
  readonly type: string;
  readonly description: string;
  /** The schema of `data.object`; undefined: any object. */
  readonly schema: PlainSchema | undefined;
  /** The collection whose writes these are. */
  readonly collection: Collection | undefined;
  /** A `data.object` of the type; undefined if none could be made from the schema (an example would provide one). */
  readonly sample: Readonly<Record<string, unknown>> | undefined;
  /** See `Tag` of kernel/documentation.ts. */
  readonly audience?: 'operator';
};

/** By type: collections in the order of their declaration, then declared types, then those of endpoints. */
export type EventTypes = ReadonlyMap<string, EventType>;

export type EventTypeSources = {
  readonly collections: ReadonlyMap<string, Collection>;
  readonly eventTypes: ReadonlyMap<string, DeclaredEventType>;
};

/** Called once, at start: a sample takes up to some milliseconds. */
export function eventTypesOf({ collections, eventTypes }: EventTypeSources): EventTypes {
  const all = [
    ...[...collections.values()].flatMap(typesOfCollection),
    ...[...eventTypes].map(([type, declared]) => declaredType(type, declared)),
    ...operationalTypes.map(
      ({ type, description, schema, sample }): EventType => ({
        type,
        description,
        schema,
        collection: undefined,
        sample,
        audience: 'operator',
      }),
    ),
  ];
  return new Map(all.map((found) => [found.type, found] as const));
}

/** Fixed, so that the same program always shows the same sample. */
const sampleAt = Date.UTC(2026, 7, 1, 9, 30);
const sampleTime = new Date(sampleAt).toISOString();
const sampleId = '01k1jx7v2mh5s8b4c9d0e6f3ga';

/** The envelope of §2.6 around the sample; undefined if there is none. */
function sampleEvent({ type, sample }: EventType): string | undefined {
  return sample === undefined
    ? undefined
    : eventDocument(`evt_${sampleId}`, type, sampleAt, JSON.stringify(sample));
}

const happened: Readonly<Record<Change, string>> = {
  created: 'A resource was created in',
  updated: 'A resource was changed in',
  deleted: 'A resource was deleted from',
};

function typesOfCollection(collection: Collection): readonly EventType[] {
  const whole = representation(collection, false);
  const [example] = collection.examples;
  const fields =
    example === undefined
      ? (schemaSample(plainSchema(collection.schema)) as typeof example)
      : withDefaults(collection.schema, example);
  return (['created', 'updated', 'deleted'] as const).map((change) => {
    const ends = change === 'deleted' && collection.softDelete;
    const times = {
      createdAt: sampleTime,
      updatedAt: sampleTime,
      ...(ends ? { deletedAt: sampleTime } : {}),
    };
    return {
      type: eventType(collection.name, change),
      description: `${happened[change]} ${collection.name}.`,
      schema: ends ? representation(collection, true) : whole,
      collection,
      sample: fields === undefined ? undefined : { id: sampleId, ...fields, ...times },
    };
  });
}

const time = { type: 'string', format: 'date-time' };

/** The representation in events; hidden fields may be missing. */
function representation({ schema, hidden }: Collection, isDeleted: boolean): PlainSchema {
  const declared = plainSchema(schema);
  const required = (declared.required ?? []) as readonly string[];
  return {
    ...declared,
    properties: {
      id: { type: 'string' },
      ...(declared.properties as PlainSchema),
      createdAt: time,
      updatedAt: time,
      ...(isDeleted ? { deletedAt: time } : {}),
    },
    required: ['id', ...required.filter((name) => !hidden.has(name)), 'createdAt', 'updatedAt'],
  };
}

function declaredType(type: string, { description, schema, examples }: DeclaredEventType): EventType {
  const plain = schema === undefined ? undefined : plainSchema(schema);
  const [example] = examples;
  const sample = example ?? (plain === undefined ? {} : (schemaSample(plain) as typeof example));
  return { type, description, schema: plain, collection: undefined, sample };
}

/*
 * `/event-types`: the types that endpoints may subscribe to, each with the schema of its object and a sample. Types of
 * collections that the caller may never read are omitted, because their samples would reveal the collection's fields.
 */

/** @param path `/api/v1/event-types` */
export function eventTypeResources(
  eventTypes: EventTypes,
  path: string,
  limits: QueryLimits,
): readonly Resource[] {
  const texts = new Map([...eventTypes.values()].map((type) => [type.type, textOf(type)] as const));
  const itemsFor = (principal: Principal): readonly DeclaredItem[] =>
    [...eventTypes.values()]
      .filter((type) => mayConcern(type, principal))
      .map(({ type }) => ({ name: type, text: texts.get(type) ?? '' }));
  const one = (ask: Ask): Shown => {
    const type = eventTypes.get(ask.captures[0] ?? '');
    if (type === undefined || !mayConcern(type, ask.principal)) return missing;
    return shown(texts.get(type.type) ?? '');
  };
  const list = declaredList(path, mayRead, itemsFor, limits, {
    name: 'EventTypes',
    tag: eventTypesTag,
    list: {
      id: 'listEventTypes',
      summary: 'List the event types',
      description: 'Each type has the schema of its object and a sample.',
      gives: { representation: json(eventTypesSchema) },
    },
  });
  const member = shownResource(`${path}/{type}`, mayRead, one, {
    name: 'EventType',
    tag: eventTypesTag,
    parameters: [pathParameter('type', 'Name of the type, such as `products.created`.')],
    read: {
      id: 'readEventType',
      summary: 'Read an event type',
      gives: { representation: json(eventTypeSchema) },
    },
  });
  return [list, member];
}

const eventTypesTag: Tag = {
  name: 'event-types',
  description: 'List the event types.',
  audience: 'operator',
};

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

/** True if events of the type may concern the principal. A portal gets only those that have a tenant. */
export function mayConcern({ collection }: EventType, principal: Principal): boolean {
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

/*
 * The program's own events about an endpoint (§6): a warning that it fails, and that it was disabled. They have no
 * collection; they belong to the endpoint's owner, and to its tenant if it has one. They contain only the origin of the
 * URL, because a path may hold a secret.
 */

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
  const id = idFor('event', newId);
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

const operationalTypes: readonly DescribedType[] = [
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

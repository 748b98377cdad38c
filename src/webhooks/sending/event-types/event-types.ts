/**
 * All described event types (§2.6, §6): the writes of each collection with the schema of its representation, the types
 * that the configuration declares, and the program's own events about endpoints. Other types may be posted too, but are
 * not listed.
 */

import { type PlainSchema, plainSchema } from '../../../config/declared-schema.ts';
import type { DeclaredEventType } from '../../../config/event-types.ts';
import type { Collection } from '../../../model/collection.ts';
import { type Change, eventDocument, eventType } from '../../../model/event.ts';
import { operationalTypes } from './operational-events.ts';
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
export function sampleEvent({ type, sample }: EventType): string | undefined {
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
  const fields = example ?? (schemaSample(plainSchema(collection.schema)) as typeof example);
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

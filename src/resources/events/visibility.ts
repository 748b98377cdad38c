/**
 * The events that a principal may read (§6): events about resources that it may read by the rules of their collection,
 * applied to the snapshot in the event. Published events without a resource belong to their owner and tenant
 * (`readRuleOfPosted`). Administrators may read all events.
 */
import { type Rule, visibleTo } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { noCollection, readRuleOfPosted } from '../../model/event.ts';
import { type Field, type Fields, ownerField } from '../../model/field.ts';
import { allOf, always, anyOf, type Filter } from '../../model/filter.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import { fieldInObject } from './event-filters.ts';

const collectionField: Field = { name: 'collection', path: [], type: 'string', column: 'collection' };

/** The fields by which clients may filter and sort events. */
export const eventFields: Fields = new Map(
  (
    [
      { name: 'id', path: ['id'], type: 'string', column: 'id' },
      { name: 'type', path: ['type'], type: 'string', column: 'type' },
      { name: 'created', path: ['created'], type: 'integer' },
      { name: 'data.object.id', path: ['data', 'object', 'id'], type: 'string' },
      { name: 'object', path: ['object'], type: 'string' },
      { name: 'data', path: ['data'], type: 'json' },
    ] satisfies Field[]
  ).map((field) => [field.name, field] as const),
);

/** Fields of the cause, which only administrators may name: a filter would tell others who caused what they see. */
const causeFields: Fields = new Map(
  (
    [
      { name: 'actor', path: ['actor'], type: 'json' },
      { name: 'actor.kind', path: ['actor', 'kind'], type: 'string' },
      { name: 'actor.id', path: ['actor', 'id'], type: 'string' },
      { name: 'actor.keyId', path: ['actor', 'keyId'], type: 'string' },
      { name: 'requestId', path: ['requestId'], type: 'string' },
    ] satisfies Field[]
  ).map((field) => [field.name, field] as const),
);

/** For administrators. */
export const allEventFields: Fields = new Map([...eventFields, ...causeFields]);

export function visibleEvents(collections: Iterable<Collection>, principal: Principal): Filter {
  if (isAdministrator(principal)) return always;
  const parts: Filter[] = [];
  const add = (collection: string, rule: Rule, member: (name: string) => Field): void => {
    const visible = visibleTo(rule, principal, ownerField, member);
    parts.push(allOf([{ op: 'eq', field: collectionField, value: collection }, visible]));
  };
  for (const collection of collections) {
    add(collection.name, collection.access.read, (name) => inObject(collection, name));
  }
  add(noCollection, readRuleOfPosted(principal), inEnvelope);
  return anyOf(parts);
}

function inEnvelope(name: string): Field {
  return { name, path: [name], type: 'string' };
}

function inObject(collection: Collection, name: string): Field {
  const field = collection.fields.get(name);
  if (field === undefined) throw new Error(`the rule of ${collection.name} names an unknown field ${name}`);
  return fieldInObject(field);
}

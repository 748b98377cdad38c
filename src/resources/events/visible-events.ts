/**
 * The events that a principal may read (§6), the fields by which clients filter and sort them, and conditions on events by
 * the resource that they are about: as the event has it, and as it was before an update, which is kept with the event.
 */
import { type Rule, visibleTo, withFields } from '../../model/access.ts';
import { type Collection, fieldNamed } from '../../model/collection.ts';
import { noCollection, readRuleOfPosted } from '../../model/event.ts';
import { type Field, type Fields, ownerField } from '../../model/field.ts';
import { allOf, always, anyOf, type Filter } from '../../model/filter.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import { formerOwnerMember } from '../collection/row.ts';

/** The field of a resource in the document of its events. */
export function fieldInObject(field: Field): Field {
  if (field.column === 'owner') return ownerField;
  const { column: _column, ...rest } = field;
  return { ...rest, path: ['data', 'object', ...field.path] };
}

/** Selects events of the type. */
export function ofType(type: string): Filter {
  return { op: 'eq', field: typeField, value: type };
}

/** Leaves out events from before the former representation was kept, for a rule that absent members satisfy. */
export const hasFormer: Filter = {
  op: 'ne',
  field: { name: 'id', path: ['id'], type: 'string', within: 'former' },
  value: null,
};

/** The filter over the fields of a resource, as one over the representation before an update that is kept with its event. */
export function inFormer(filter: Filter): Filter {
  return withFormerOwner(withFields(filter, fieldInFormer));
}

function fieldInFormer(field: Field): Field {
  if (field.column === 'owner') return formerOwner;
  const { column: _column, ...rest } = field;
  return { ...rest, within: 'former' };
}

/** The owner before the update, where that was another one. */
const formerOwner: Field = { name: 'owner', path: [formerOwnerMember], type: 'string', within: 'former' };

/** Looks for the former owner at the owner of the event where the update left it. */
function withFormerOwner(filter: Filter): Filter {
  if ('filters' in filter) return { op: filter.op, filters: filter.filters.map(withFormerOwner) };
  if (filter.op === 'not') return { op: 'not', filter: withFormerOwner(filter.filter) };
  if (!('field' in filter) || filter.field !== formerOwner) return filter;
  const isSame: Filter = { op: 'eq', field: formerOwner, value: null };
  return anyOf([
    allOf([{ op: 'not', filter: isSame }, filter]),
    allOf([isSame, { ...filter, field: ownerField }]),
  ]);
}

const typeField: Field = { name: 'type', path: ['type'], type: 'string', column: 'type' };

// Events about resources that it may read by the rules of their collection, applied to the
// snapshot in the event. Published events without a resource belong to their owner and tenant (`readRuleOfPosted`). Administrators may
// read all events.

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
    add(collection.name, collection.access.read, (name) => fieldInObject(fieldNamed(collection, name)));
  }
  add(noCollection, readRuleOfPosted(principal), inEnvelope);
  return anyOf(parts);
}

function inEnvelope(name: string): Field {
  return { name, path: [name], type: 'string' };
}

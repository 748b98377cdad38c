/**
 * Conditions on events by the resource that they are about: on the resource as the event has it, and before an update, as it is kept with
 * the event.
 */
import { withFields } from '../../model/access.ts';
import { type Field, ownerField } from '../../model/field.ts';
import { allOf, anyOf, type Filter } from '../../model/filter.ts';
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

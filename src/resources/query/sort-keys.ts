/** The order of a list: keys as a client writes them, made total by the id (store.ts, `ListQuery.sort`). */
import { type Field, type Fields, madeFields } from '../../model/field.ts';
import type { Sort } from '../../model/filter.ts';
import { sortKeysMax } from './asked.ts';
import { type FaultList, listed, type Place, quote, unknownField } from './faults.ts';

const [madeId] = madeFields;

/** Where keys go and what they are read against. */
type KeyReading = {
  readonly keys: Sort[];
  readonly fields: Fields;
  readonly faults: FaultList;
  readonly place: Place;
};

/**
 * Reads one key, `price` or `-price`, into `keys`.
 * @param descending the direction of a key without a prefix
 */
export function addSortKey(text: string, descending: boolean, into: KeyReading): void {
  const { fields, faults, place } = into;
  const prefixed = text.charCodeAt(0) === 0x2d;
  const name = prefixed ? text.slice(1) : text;
  const field = fields.get(name);
  if (field === undefined) {
    faults.unprocessable(name === '' ? 'sort names no field' : unknownField(name, fields), place);
    return;
  }
  addKey({ field, direction: prefixed || descending ? 'desc' : 'asc' }, into);
}

/** Adds a key unless its field has no order, comes twice, or is one too many. */
export function addKey(key: Sort, into: KeyReading): void {
  const { keys, fields, faults, place } = into;
  const { name, type } = key.field;
  if (type === 'array' || type === 'json') {
    faults.unprocessable(
      `cannot sort by ${quote(name)}; sortable fields: ${listed(sortable(fields))}`,
      place,
    );
  } else if (keys.some(({ field }) => field === key.field)) {
    faults.unprocessable(`sort names ${quote(name)} twice`, place);
  } else if (keys.length >= sortKeysMax) {
    faults.unprocessable(`sort takes at most ${sortKeysMax} fields`, place);
  } else keys.push(key);
}

/**
 * Ends the keys with the id, in the direction of the key before it so that one walk of an index serves all. What
 * comes after an id that was asked for decides nothing and is dropped.
 */
export function totalOrder(keys: readonly Sort[], fields: Fields, descending: boolean): readonly Sort[] {
  const field = idField(fields);
  const at = keys.findIndex((key) => key.field === field);
  if (at !== -1) return keys.slice(0, at + 1);
  const direction = keys.at(-1)?.direction ?? (descending ? 'desc' : 'asc');
  return [...keys, { field, direction }];
}

function idField(fields: Fields): Field {
  const field = fields.get('id') ?? madeId;
  if (field === undefined) throw new Error('a collection without an id');
  return field;
}

function* sortable(fields: Fields): Generator<string> {
  for (const { name, type } of fields.values()) if (type !== 'array' && type !== 'json') yield name;
}

/** Sort keys, `limit`, `page` and `cursor`, as every query syntax reads them. */
import { type Field, type Fields, madeFields } from '../../model/field.ts';
import type { Filter, Sort } from '../../model/filter.ts';
import { type AskedPosition, pageMax, sortKeysMax } from './list-query.ts';
import { cap, type FaultList, listed, type Place, quote, unknownField } from './query-faults.ts';

const [madeId] = madeFields;

type KeyReading = {
  readonly keys: Sort[];
  readonly fields: Fields;
  /** The key by what a search finds; undefined if it does not exist here. */
  readonly rank?: Field | undefined;
  readonly faults: FaultList;
  readonly place: Place;
};

/** Reads one key, `price` or `-price`, into `keys`. @param descending the direction of a key without a prefix */
export function addSortKey(text: string, descending: boolean, into: KeyReading): void {
  const { fields, rank, faults, place } = into;
  const prefixed = text.charCodeAt(0) === 0x2d;
  const name = prefixed ? text.slice(1) : text;
  const field = rank?.name === name ? rank : fields.get(name);
  if (field === undefined) {
    faults.unprocessable(name === '' ? 'sort has an empty field name' : unknownField(name, fields), place);
    return;
  }
  addKey({ field, direction: prefixed || descending ? 'desc' : 'asc' }, into);
}

/** Adds a key unless its field cannot be sorted by, occurs twice, or exceeds the limit. */
export function addKey(key: Sort, into: KeyReading): void {
  const { keys, fields, faults, place } = into;
  const { name } = key.field;
  if (!isSortable(key.field)) {
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

/** Refuses an order by rank of a list that no search limits, such as one whose `q` is blank. */
export function checkRank(
  keys: readonly Sort[],
  search: Filter | undefined,
  into: { readonly faults: FaultList; readonly place: Place },
): void {
  const ranked = keys.find(({ field }) => field.column === 'rank');
  if (ranked === undefined || (search !== undefined && search.op !== 'always')) return;
  const { name } = ranked.field;
  into.faults.unprocessable(
    `sort by ${name} orders what q finds; give q at least one word, or sort by a field`,
    into.place,
  );
}

/**
 * Makes the order total: appends the id in the direction of the last key, so that one index scan serves all keys. Keys
 * after an explicit id have no effect and are dropped.
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
  if (field === undefined) throw new Error('a sortable collection requires a field id');
  return field;
}

/** Documents have no owner, and functions order their own writes by documents (src/logic/transaction/overlay-page.ts). */
function isSortable({ type, column }: Field): boolean {
  return type !== 'array' && type !== 'json' && column !== 'owner';
}

function* sortable(fields: Fields): Generator<string> {
  for (const field of fields.values()) if (isSortable(field)) yield field.name;
}

const start: AskedPosition = { from: 'start' };

/** @param into `shown` is the number as the client wrote it, quoted if it is text */
export function checkRange(
  name: string,
  value: number | undefined,
  max: number,
  into: { readonly shown: string; readonly faults: FaultList; readonly place: Place },
): number | undefined {
  if (value !== undefined && Number.isInteger(value) && value >= 1 && value <= max) return value;
  into.faults.unprocessable(
    `${name} must be an integer from 1 to ${max}, not ${cap(into.shown)}`,
    into.place,
  );
  return undefined;
}

export function checkPage(
  value: number | undefined,
  into: { readonly shown: string; readonly faults: FaultList; readonly place: Place },
): number | undefined {
  return checkRange('page', value, pageMax, into);
}

/**
 * Returns the start of the page. A cursor wins over a page number, which then is only a label, as in the links of a
 * list.
 */
export function positionOf(
  cursor: string | undefined,
  page: number | undefined,
  into: { readonly faults: FaultList; readonly place: Place },
): AskedPosition {
  if (cursor === '') into.faults.malformed('cursor is empty; use nextCursor of a page', into.place);
  if (cursor !== undefined) return { from: 'cursor', cursor };
  // Page 1 is the start: the same plan and the same cached response.
  return page === undefined || page === 1 ? start : { from: 'page', page };
}

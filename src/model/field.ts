/**
 * A field for filters, sorting and selections: the path of its value in the stored representation, and how its values
 * compare. Derived from a collection's schema (§2.1).
 */

import type { Period } from './period.ts';

export type ScalarType = 'string' | 'number' | 'integer' | 'boolean' | 'timestamp';

export type Scalar = string | number | boolean | null;

export type Field = {
  /** The name in requests: `price`, or `address.city` for a nested one. */
  readonly name: string;
  /** Member names from the root of the representation. */
  readonly path: readonly string[];
  /** `array`: an array of scalars of type `item`; equality on it means membership. `json`: selectable only. */
  readonly type: ScalarType | 'array' | 'json';
  readonly item?: ScalarType;
  /** Set if the store has a column for the value, which it then prefers to the document. */
  readonly column?:
    | 'id'
    | 'owner'
    | 'createdAt'
    | 'updatedAt'
    | 'deletedAt'
    | 'rev'
    | 'type'
    | 'collection'
    | 'document'
    /** No column, but what a search computes for a row that it finds (src/model/search/search-index.ts). */
    | 'rank';
  /** Set for a string field that compares by its folded value (fold-case.ts). Values and patterns that it is compared with are folded. */
  readonly folded?: true;
  /** Set for a field of days such as 2026-01-31, whose type is that of texts (`format: 'date'`). */
  readonly isDay?: true;
  /** Set for a time of which aggregates take the first day of its period, as text. */
  readonly period?: Period;
  /** Set if the path begins in the representation before the change of an event, not in the event's document. */
  readonly within?: 'former';
};

export type Fields = ReadonlyMap<string, Field>;

/** The field without regard to case; any other than a string field has none. */
export function ignoringCase(field: Field): Field {
  return field.type === 'string' ? { ...field, folded: true } : field;
}

/** The last field of every total order. */
export const idField: Field = { name: 'id', path: ['id'], type: 'string', column: 'id' };

/** The owner of a row; only administrators can name it (`withOwner` in collection.ts). */
export const ownerField: Field = { name: 'owner', path: [], type: 'string', column: 'owner' };

/** The text of the ETag field, which `fields` can name and nothing else (`tagFieldOf` in collection.ts). Its path is where the member is added. */
export const tagField: Field = { name: 'etag', path: [], type: 'string', column: 'rev' };

/** The fields that the server sets for every resource (§2.1). */
export const madeFields: readonly Field[] = [
  idField,
  { name: 'createdAt', path: ['createdAt'], type: 'timestamp', column: 'createdAt' },
  { name: 'updatedAt', path: ['updatedAt'], type: 'timestamp', column: 'updatedAt' },
];

/** The sort key by rank, which clients cannot select or filter by. It has another name if the collection declares a field `rank`. */
export function rankFieldOf(fields: Fields): Field {
  const name = fields.has('rank') ? '$rank' : 'rank';
  return { name, path: [], type: 'integer', column: 'rank' };
}

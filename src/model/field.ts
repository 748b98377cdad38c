/**
 * A field that a filter, a sort or a selection may name: where its value stands in the stored
 * representation, and how values of it compare. Derived from a collection's schema (§2.1).
 */

export type ScalarType = 'string' | 'number' | 'integer' | 'boolean' | 'timestamp';

export type Scalar = string | number | boolean | null;

export type Field = {
  /** The name a client writes: `price`, or `address.city` for a nested one. */
  readonly name: string;
  /** Member names from the root of the representation. */
  readonly path: readonly string[];
  /** `array`: an array of scalars of type `item`; equality on it means membership. `json`: selectable only. */
  readonly type: ScalarType | 'array' | 'json';
  readonly item?: ScalarType;
  /** Set where the store keeps the value in a column of its own, which it then prefers to the document. */
  readonly column?: 'id' | 'owner' | 'createdAt' | 'updatedAt' | 'deletedAt' | 'rev' | 'type' | 'collection';
};

/** Fields by the name a client writes. */
export type Fields = ReadonlyMap<string, Field>;

/** What ends every total order. */
export const idField: Field = { name: 'id', path: ['id'], type: 'string', column: 'id' };

/** Whose row it is; never a name that clients may use. */
export const ownerField: Field = { name: 'owner', path: [], type: 'string', column: 'owner' };

/** The fields that the server makes for every resource (§2.1). */
export const madeFields: readonly Field[] = [
  idField,
  { name: 'createdAt', path: ['createdAt'], type: 'timestamp', column: 'createdAt' },
  { name: 'updatedAt', path: ['updatedAt'], type: 'timestamp', column: 'updatedAt' },
];

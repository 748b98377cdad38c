/** A collection with a field of each kind, and limits small enough to reach. */
import type { Field, Fields, Scalar } from '../../src/model/field.ts';
import type { Filter, Sort } from '../../src/model/filter.ts';
import type { Asked, Compiled, Fault, QueryLimits, Target } from '../../src/resources/query/list-query.ts';

const declared: readonly Field[] = [
  { name: 'id', path: ['id'], type: 'string', column: 'id' },
  { name: 'name', path: ['name'], type: 'string' },
  { name: 'price', path: ['price'], type: 'number' },
  { name: 'categoryId', path: ['categoryId'], type: 'string' },
  { name: 'stock', path: ['stock'], type: 'integer' },
  { name: 'published', path: ['published'], type: 'boolean' },
  { name: 'tags', path: ['tags'], type: 'array', item: 'string' },
  { name: 'sizes', path: ['sizes'], type: 'array', item: 'integer' },
  { name: 'address', path: ['address'], type: 'json' },
  { name: 'address.city', path: ['address', 'city'], type: 'string' },
  // Names that parameters, operators and SQL have as well.
  { name: 'limit', path: ['limit'], type: 'integer' },
  { name: 'and', path: ['and'], type: 'string' },
  { name: 'createdAt', path: ['createdAt'], type: 'timestamp', column: 'createdAt' },
  { name: 'updatedAt', path: ['updatedAt'], type: 'timestamp', column: 'updatedAt' },
];

export const fields: Fields = new Map(declared.map((field) => [field.name, field]));

export const products: Target = { table: 'products', fields, searched: true };

export const limits: QueryLimits = {
  listLimitDefault: 20,
  listLimitMax: 1000,
  filterDepthMax: 4,
  filterNodesMax: 12,
  inValuesMax: 5,
  filterReferenceDepthMax: 3,
  filterReferencesMax: 8,
  searchTermsMax: 3,
  sqlCharactersMax: 2000,
  aggregateGroupsMax: 100,
  aggregateColumnsMax: 6,
  expandDepthMax: 3,
  expandPathsMax: 4,
  validationErrorsMax: 5,
};

export function field(name: string): Field {
  const found = fields.get(name);
  if (found === undefined) throw new Error(`the test collection has no field ${name}`);
  return found;
}

export function askedOf(compiled: Compiled): Asked {
  if (!compiled.ok) throw new Error(`refused: ${compiled.faults.map(({ message }) => message).join('; ')}`);
  return compiled.asked;
}

export function faultsOf(compiled: Compiled): readonly Fault[] {
  if (compiled.ok) throw new Error(`accepted: ${JSON.stringify(compiled.asked.filter)}`);
  return compiled.faults;
}

/** A filter with the names of its fields in their place, for comparing. */
export function plain(filter: Filter): unknown {
  return JSON.parse(JSON.stringify(filter), (_key, value) => (isField(value) ? value.name : value));
}

export function sortNames(sort: readonly Sort[]): readonly string[] {
  return sort.map((key) => (key.direction === 'desc' ? '-' : '') + key.field.name);
}

function isField(value: unknown): value is Field {
  return typeof value === 'object' && value !== null && 'path' in value && 'name' in value;
}

export type Resource = Readonly<Record<string, Scalar | readonly Scalar[]>>;

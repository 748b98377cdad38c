/** The two-valued logic of model/filter.ts on one flat resource: what a compiled filter is judged by. */
import type { Scalar } from '../../src/model/field.ts';
import type { Filter } from '../../src/model/filter.ts';
import type { Resource } from './shop.ts';

export function matches(filter: Filter, resource: Resource): boolean {
  switch (filter.op) {
    case 'always':
      return true;
    case 'never':
      return false;
    case 'and':
      return filter.filters.every((part) => matches(part, resource));
    case 'or':
      return filter.filters.some((part) => matches(part, resource));
    case 'not':
      return !matches(filter.filter, resource);
    case 'in':
      return filter.values.some((value) => compareTo('eq', scalarOf(resource, filter.field.name), value));
    case 'has': {
      const value = resource[filter.field.name];
      return Array.isArray(value) && value.includes(filter.value);
    }
    case 'like': {
      const value = scalarOf(resource, filter.field.name);
      return typeof value === 'string' && isLike(value, filter.pattern);
    }
    case 'search':
      throw new Error('the test resources have no search text');
    case 'related':
      throw new Error('the test resources refer to nothing');
    default:
      return compareTo(filter.op, scalarOf(resource, filter.field.name), filter.value);
  }
}

function scalarOf(resource: Resource, name: string): Scalar {
  const value = resource[name] ?? null;
  return typeof value === 'object' && value !== null ? '(array)' : value;
}

function compareTo(op: string, value: Scalar, other: Scalar): boolean {
  if (op === 'eq') return value === other;
  if (op === 'ne') return value !== other;
  if (value === null || other === null) return false;
  if (op === 'gt') return value > other;
  if (op === 'gte') return value >= other;
  return op === 'lt' ? value < other : value <= other;
}

/** `%` any run, `_` any one character, `\` escapes. */
export function isLike(text: string, pattern: string): boolean {
  if (pattern === '') return text === '';
  const first = pattern.charAt(0);
  if (first === '%') {
    return isLike(text, pattern.slice(1)) || (text !== '' && isLike(text.slice(1), pattern));
  }
  if (text === '') return false;
  if (first === '_') return isLike(text.slice(1), pattern.slice(1));
  const escaped = first === '\\' && pattern.length > 1;
  const wanted = escaped ? pattern.charAt(1) : first;
  return text.startsWith(wanted) && isLike(text.slice(1), pattern.slice(escaped ? 2 : 1));
}

/**
 * The normal form of a query: filter, sort, selection and inclusions as a text that is equal for equivalent queries (operands,
 * values and terms are sorted and deduplicated). A cursor is bound to it. It leaves out the limit, which may change
 * from page to page, the position and the collection.
 */
import { hash } from 'node:crypto';
import type { Filter, Sort } from '../../model/filter.ts';
import { expansionText } from '../relations/relations.ts';
import { aggregationText } from './aggregation.ts';
import type { Asked } from './list-query.ts';

/** Longer forms are hashed, because every page computes a MAC over the text. */
const shapeCharactersMax = 256;

/** Returns at most 256 characters; a hash starts with `#`, which no plain form does. */
export function shapeOf(
  asked: Pick<Asked, 'filter' | 'sort' | 'select' | 'owner' | 'tag' | 'aggregation' | 'expansion'>,
): string {
  const select = asked.select?.map((field) => field.name);
  const { aggregation, expansion, owner, tag } = asked;
  const shown =
    aggregation !== undefined
      ? `groups${aggregationText(aggregation, filterText)}`
      : select === undefined
        ? '*'
        : JSON.stringify(select);
  const included = expansion === undefined ? '' : `+${JSON.stringify(expansionText(expansion))}`;
  const owned = owner === undefined ? '' : `@${owner.name}`;
  const tagged = tag === undefined ? '' : `#${tag.name}`;
  const text = `${JSON.stringify(asked.sort.map(sortText))}${included}${owned}${tagged}${shown}${filterText(asked.filter)}`;
  return text.length <= shapeCharactersMax ? text : `#${hash('sha256', text, 'base64url')}`;
}

function sortText({ field, direction }: Sort): string {
  return direction === 'desc' ? `-${field.name}` : field.name;
}

function filterText(filter: Filter): string {
  switch (filter.op) {
    case 'always':
    case 'never':
      return filter.op;
    case 'and':
    case 'or':
      return `${filter.op}(${canonical(filter.filters.map(filterText))})`;
    case 'not':
      return `not(${filterText(filter.filter)})`;
    case 'in':
      return `in(${JSON.stringify(filter.field.name)},${canonical(filter.values.map((value) => JSON.stringify(value)))})`;
    case 'like':
      return `like(${JSON.stringify([filter.field.name, filter.pattern])})`;
    case 'related':
      return `related(${JSON.stringify(filter.field.name)},${filterText(filter.filter)})`;
    case 'search':
      return `search${filter.mark ?? ''}(${canonical(filter.terms.map((term) => JSON.stringify(term)))})`;
    default:
      return `${filter.op}(${JSON.stringify([filter.field.name, filter.value])})`;
  }
}

function canonical(parts: readonly string[]): string {
  return [...new Set(parts)].sort().join(',');
}

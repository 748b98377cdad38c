/**
 * The compiled form of a list query (§4.2, §4.9): query string, form, JSON and SQL all compile to this value, or to
 * faults. It holds only `Field` objects and scalars, so no client text reaches an engine's SQL. In a GET every fault is
 * 400. In a QUERY (RFC 10008) `malformed` is 400: content that does not parse as its media type, or a cursor that
 * Comity cannot have issued. `unprocessable` is 422: content that parses but cannot be executed, such as an unknown
 * field or operator, a value of the wrong type or out of range, a repeated parameter, or more than a limit allows.
 */

import { hash } from 'node:crypto';
import type { Field, Fields } from '../../model/field.ts';
import { always, atMoment, type Filter, isRelative, type Reach, type Sort } from '../../model/filter.ts';
import type { SearchIndex } from '../../model/search/search-index.ts';
import type { Measure } from '../../store/aggregate.ts';
import { type Expansion, expansionText, type Relations } from '../relations/relations.ts';

/** `table` is also the name that SQL uses in FROM. */
export type Target = Reach & {
  /** False if the collection has no text for `q` to search. */
  readonly searched: boolean;
  /** The fields that aggregates may name; absent: all. */
  readonly aggregated?: Fields | undefined;
  /** What its documents refer to, and what refers to them; absent: `expand` and `counts` do not exist. */
  readonly relations?: Relations | undefined;
  /** The field by which `fields` names the entity tag; absent: it cannot. */
  readonly tag?: Field | undefined;
  /** The index of words that `q` uses. */
  readonly searchIndex?: SearchIndex | undefined;
  /** The sort key by what `q` finds; present with an index of words. */
  readonly rank?: Field | undefined;
};

export type QueryLimits = {
  readonly listLimitDefault: number;
  readonly listLimitMax: number;
  /** Levels of `and`, `or` and `not` in JSON, and of parentheses in SQL. */
  readonly filterDepthMax: number;
  readonly filterNodesMax: number;
  /** References that the path of one field may lead through. */
  readonly filterReferenceDepthMax: number;
  /** References on the paths of all fields that a query compares. */
  readonly filterReferencesMax: number;
  /** Values of one `in`, or of one repeated parameter. */
  readonly inValuesMax: number;
  readonly searchTermsMax: number;
  readonly sqlCharactersMax: number;
  /** Groups of one aggregate query, and fields that it groups by and results that it computes. */
  readonly aggregateGroupsMax: number;
  readonly aggregateColumnsMax: number;
  readonly expandDepthMax: number;
  readonly expandPathsMax: number;
  /** Faults that a response lists. */
  readonly validationErrorsMax: number;
};

/** Those of the content of a QUERY. */
export type QueryTextLimits = QueryLimits & {
  /** Octets of content. */
  readonly queryBytesMax: number;
  readonly jsonDepthMax: number;
  readonly jsonMembersMax: number;
};

/** Where a page starts. `page` above 1 and `offset` cost time for the rows that they skip. */
export type AskedPosition =
  | { readonly from: 'start' }
  | { readonly from: 'cursor'; readonly cursor: string }
  | { readonly from: 'page'; readonly page: number }
  | { readonly from: 'offset'; readonly offset: number };

export type Asked = {
  readonly filter: Filter;
  /** A total order: the last key is the id, and no field occurs twice. */
  readonly sort: readonly Sort[];
  readonly limit: number;
  readonly position: AskedPosition;
  /** In the order of the collection's fields, without duplicates; undefined selects all fields. */
  readonly select: readonly Field[] | undefined;
  /** The owner, which the items show as their last member; absent: they do not. */
  readonly owner?: Field | undefined;
  /** The entity tag, which the items, and the documents that the response includes, show as a member; absent: they do not. */
  readonly tag?: Field | undefined;
  /** Present: the items are groups, `sort` orders them by columns, and `select` is undefined. */
  readonly aggregation?: Aggregation | undefined;
  /** What the response adds to the documents; absent: nothing. */
  readonly expansion?: Expansion | undefined;
  /** The page number that the client sent; beside a cursor it is only a label, as in the links of a list. */
  readonly page: number | undefined;
  /** Pairs that a link to another page repeats: all but `page`, `cursor` and `api_key`. Undefined for JSON and SQL. */
  readonly source: readonly (readonly [name: string, value: string])[] | undefined;
};

/** An aggregate query (§4.18). */
export type Aggregation = {
  readonly groupBy: readonly Field[];
  readonly measures: readonly Measure[];
  /** One for each field of `groupBy`, then one for each measure, by their names in the result. */
  readonly columns: readonly Field[];
  /** The columns that the result shows, in its order. */
  readonly shown: readonly Field[];
  /** Over the columns. */
  readonly having: Filter;
  readonly groupsMax: number;
};

export type Fault = {
  readonly kind: 'malformed' | 'unprocessable';
  /** Says what is wrong and what would be valid, in lower case. Echoes at most 64 characters of input. */
  readonly message: string;
  readonly pointer?: string;
  readonly parameter?: string;
};

export type Compiled =
  | { readonly ok: true; readonly asked: Asked }
  | { readonly ok: false; readonly faults: readonly Fault[] };

/** Keeps `page` times `limit` within the integers that every engine counts exactly. */
export const pageMax = 1_000_000_000;
/** Each key adds one more range to the query of a page. */
export const sortKeysMax = 8;

// The normal form of a query: filter, sort, selection and inclusions as a text that is equal for equivalent queries (operands, values and
// terms are sorted and deduplicated). A cursor is bound to it. It leaves out the limit, which may change from page to page, the position
// and the collection.

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
      ? `groups${aggregationText(aggregation)}`
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
      return `${caseText(filter.field)}like(${JSON.stringify([filter.field.name, filter.pattern])})`;
    case 'related':
      return `related(${JSON.stringify(filter.field.name)},${filterText(filter.filter)})`;
    case 'search':
      return `search${filter.mark ?? ''}(${canonical(filter.terms.map((term) => JSON.stringify(term)))})`;
    default:
      return `${caseText(filter.field)}${filter.op}(${JSON.stringify([filter.field.name, filter.value])})`;
  }
}

function caseText({ folded }: Field): string {
  return folded === true ? 'i' : '';
}

function canonical(parts: readonly string[]): string {
  return [...new Set(parts)].sort().join(',');
}

/** The normal form of an aggregation, for the shape of its query. */
function aggregationText({ groupBy, measures, shown, having }: Aggregation): string {
  const computed = measures.map((measure) => [measure.of, measure.of === 'rows' ? '' : measure.field.name]);
  const names = [groupBy.map(textOfGroup), computed, shown.map(({ name }) => name)];
  return `${JSON.stringify(names)}${having === always ? '' : filterText(having)}`;
}

/** The query compares with times relative to the present. */
export function isRelativeQuery({ filter, aggregation }: Pick<Asked, 'filter' | 'aggregation'>): boolean {
  return isRelative(filter) || (aggregation !== undefined && isRelative(aggregation.having));
}

/** The query with the values that its relative times have at the moment. */
export function askedAt(asked: Asked, nowMs: number): Asked {
  const { filter, aggregation } = asked;
  return {
    ...asked,
    filter: atMoment(filter, nowMs),
    ...(aggregation === undefined
      ? {}
      : { aggregation: { ...aggregation, having: atMoment(aggregation.having, nowMs) } }),
  };
}

/** Equal for equal groups. */
export function textOfGroup({ name, period }: Field): string {
  return period === undefined ? name : `${name} ${period.unit} ${period.timeZone}`;
}

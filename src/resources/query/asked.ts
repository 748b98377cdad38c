/**
 * What a client asks of a collection, whichever way it asks (§4.2, §4.9): query string, form, JSON or SQL compile to
 * this one value, or to faults. Values hold only `Field` objects and scalars, so no client text reaches an engine's SQL.
 *
 * In a GET every fault is a 400. In a QUERY `malformed` is 400 and `unprocessable` is 422 (RFC 10008, surface.md):
 *   malformed      content that does not parse as its media type; a cursor that cannot be one of ours
 *   unprocessable  everything that parses and cannot be carried out: an unknown field, operator or member, a value of
 *                  the wrong type or out of range, a parameter given twice, more than a limit allows
 */
import type { Field, Fields } from '../../model/field.ts';
import type { Filter, Sort } from '../../model/filter.ts';

/** The rows to ask of; what a caller lists usually has more members than these. */
export type Target = {
  /** The name that SQL must give in FROM. */
  readonly table: string;
  readonly fields: Fields;
  /** Whether `q` has anything to look in. */
  readonly searched: boolean;
};

/** Named as in the settings table, so that the settings themselves fit. */
export type QueryLimits = {
  readonly listLimitDefault: number;
  readonly listLimitMax: number;
  /** Levels of `and`, `or`, `not` in JSON, of parentheses in SQL. */
  readonly filterDepthMax: number;
  /** Comparisons and connectives. */
  readonly filterNodesMax: number;
  /** Values of one `in`, or of one repeated parameter. */
  readonly inValuesMax: number;
  readonly searchTermsMax: number;
  readonly sqlCharactersMax: number;
  /** Faults that are told; further ones are left out. */
  readonly validationErrorsMax: number;
};

/** Where the client wants the page to start. `page` above 1 and `offset` cost what they skip. */
export type AskedPosition =
  | { readonly from: 'start' }
  | { readonly from: 'cursor'; readonly cursor: string }
  | { readonly from: 'page'; readonly page: number }
  | { readonly from: 'offset'; readonly offset: number };

export type Asked = {
  readonly filter: Filter;
  /** A total order: the last key is the id, and no field comes twice. */
  readonly sort: readonly Sort[];
  readonly limit: number;
  readonly position: AskedPosition;
  /** In the order of the collection's fields, none twice; undefined selects everything. */
  readonly select: readonly Field[] | undefined;
  /** The page number that was written; beside a cursor it only labels, as in the links of a list. */
  readonly page: number | undefined;
  /** The pairs that a link to another page repeats: without `page`, `cursor` and `api_key`. Undefined for JSON and SQL. */
  readonly source: readonly (readonly [name: string, value: string])[] | undefined;
};

export type Fault = {
  readonly kind: 'malformed' | 'unprocessable';
  /** What was wrong and what would work, in lower case. Echoes at most 64 characters of any input. */
  readonly message: string;
  /** JSON Pointer into the content. */
  readonly pointer?: string;
  /** Name of the query or form parameter. */
  readonly parameter?: string;
};

export type Compiled =
  | { readonly ok: true; readonly asked: Asked }
  | { readonly ok: false; readonly faults: readonly Fault[] };

/** Keeps `page` times `limit` within what every engine counts exactly. */
export const pageMax = 1_000_000_000;
/** A key costs each page one more range. */
export const sortKeysMax = 8;

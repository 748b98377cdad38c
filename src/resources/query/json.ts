/**
 * JSON content of QUERY (§4.9): `{"filter": {...}, "sort": ["-price"], "limit": 20, "cursor": null, "page": 2, "fields": [...],
 * "q": "..."}`, every member optional, null for absent. `sort` and `fields` also take the comma list of a query string.
 *
 * The value has parsed as JSON when it comes here, so whatever is wrong with it is unprocessable (422), a value of
 * the wrong JSON type included; only a cursor can be malformed (asked.ts). Faults carry JSON Pointers.
 */

import type { Field } from '../../model/field.ts';
import { allOf, always, type Filter, type Sort } from '../../model/filter.ts';
import { type Compiled, type QueryLimits, sortKeysMax, type Target } from './asked.ts';
import { FaultList, quote, show } from './faults.ts';
import { compileJsonFilter } from './json-filter.ts';
import { checkPage, checkRange, positionOf } from './page-position.ts';
import { compileSearch } from './search-terms.ts';
import { inOrder, selectFields } from './selection.ts';
import { addSortKey, totalOrder } from './sort-keys.ts';

const members: ReadonlySet<string> = new Set(['filter', 'sort', 'limit', 'cursor', 'page', 'fields', 'q']);

type Members = Readonly<Record<string, unknown>>;

type Reading = {
  readonly query: Members;
  readonly target: Target;
  readonly limits: QueryLimits;
  readonly faults: FaultList;
};

/** Compiles a query document as parseJson gave it. */
export function compileJson(value: unknown, target: Target, limits: QueryLimits): Compiled {
  const faults = new FaultList(limits.validationErrorsMax);
  if (!isObject(value)) {
    faults.unprocessable(
      `a query is an object with the members ${[...members].join(', ')}, not ${show(value)}`,
      {
        pointer: '',
      },
    );
    return { ok: false, faults: faults.faults };
  }
  for (const name of Object.keys(value)) {
    if (members.has(name)) continue;
    const message = `unknown member ${quote(name)}; members: ${[...members].join(', ')}`;
    faults.unprocessable(message, { pointer: '' });
  }
  const reading: Reading = { query: value, target, limits, faults };
  const page = readPage(reading);
  const limit = readLimit(reading);
  const sort = readSort(reading);
  const select = readSelect(reading);
  const { filter } = value;
  const conditions: Filter = isGiven(filter)
    ? compileJsonFilter(filter, target.fields, limits, faults)
    : always;
  const search = readSearch(reading);
  const place = { pointer: '/cursor' };
  const position = positionOf(readText(reading, 'cursor'), page, { faults, place });
  if (!faults.isEmpty) return { ok: false, faults: faults.faults };
  const asked = {
    filter: allOf([conditions, search]),
    sort,
    limit,
    position,
    select,
    page,
    source: undefined,
  };
  return { ok: true, asked };
}

function readPage({ query: { page }, faults }: Reading): number | undefined {
  if (!isGiven(page)) return undefined;
  const number = typeof page === 'number' ? page : undefined;
  return checkPage(number, { shown: show(page), faults, place: { pointer: '/page' } });
}

function readLimit({ query: { limit }, limits, faults }: Reading): number {
  const { listLimitDefault, listLimitMax } = limits;
  if (!isGiven(limit)) return listLimitDefault;
  const number = typeof limit === 'number' ? limit : undefined;
  const into = { shown: show(limit), faults, place: { pointer: '/limit' } };
  return checkRange('limit', number, listLimitMax, into) ?? listLimitDefault;
}

function readSort(reading: Reading): readonly Sort[] {
  const { fields } = reading.target;
  const keys: Sort[] = [];
  for (const { text, pointer } of readNames(reading, 'sort', sortKeysMax)) {
    addSortKey(text, false, { keys, fields, faults: reading.faults, place: { pointer } });
  }
  return totalOrder(keys, fields, false);
}

function readSelect(reading: Reading): readonly Field[] | undefined {
  if (!isGiven(reading.query.fields)) return undefined;
  const { fields } = reading.target;
  const chosen = new Set<Field>();
  for (const { text, pointer } of readNames(reading, 'fields', fields.size)) {
    for (const field of selectFields([text], fields, { faults: reading.faults, place: { pointer } }))
      chosen.add(field);
  }
  return inOrder(chosen, fields);
}

function readSearch(reading: Reading): Filter {
  const { target, limits, faults } = reading;
  const text = readText(reading, 'q');
  return text === undefined
    ? always
    : compileSearch(text, target, { limits, faults, place: { pointer: '/q' } });
}

function readText({ query, faults }: Reading, member: string): string | undefined {
  const value = query[member];
  if (!isGiven(value)) return undefined;
  if (typeof value === 'string') return value;
  faults.unprocessable(`${member} takes a string, not ${show(value)}`, { pointer: `/${member}` });
  return undefined;
}

/** The names in an array of strings or in a comma list, each with its place. */
function readNames(
  { query, faults }: Reading,
  member: string,
  max: number,
): { text: string; pointer: string }[] {
  const value = query[member];
  if (!isGiven(value)) return [];
  const pointer = `/${member}`;
  if (typeof value === 'string') return value.split(',').map((text) => ({ text, pointer }));
  const names: { text: string; pointer: string }[] = [];
  if (!Array.isArray(value)) {
    faults.unprocessable(`${member} takes an array of field names, not ${show(value)}`, { pointer });
    return names;
  }
  const items: readonly unknown[] = value;
  if (items.length === 0 && member === 'fields') faults.unprocessable('fields names no field', { pointer });
  if (items.length > max) {
    faults.unprocessable(`${member} takes at most ${max} names, not ${items.length}`, { pointer });
    return names;
  }
  for (const [index, text] of items.entries()) {
    const place = `${pointer}/${index}`;
    if (typeof text === 'string') names.push({ text, pointer: place });
    else faults.unprocessable(`${member} takes field names, not ${show(text)}`, { pointer: place });
  }
  return names;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

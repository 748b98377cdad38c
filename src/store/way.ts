/**
 * The way in which an engine will read the pages of a list, for people who ask why it is fast or slow: by which index, or by a look at every row. The same
 * in both engines as far as what a page costs is the same; the plan that the engine's own planner makes of a scan is not part of it.
 */
import type { Field } from '../model/field.ts';
import type { Sort } from '../model/filter.ts';
import { fieldKey } from './field-value.ts';
import { conjuncts, isRanked, type Shape } from './filter-shape.ts';
import { type Indexed, type Service, serve } from './serve.ts';
import type { Table } from './store.ts';
import type { Way } from './store-report.ts';

export type Read = {
  readonly layout: Indexed & { readonly table: Table };
  readonly filter: Shape;
  readonly sort: readonly Sort[];
  /** Set if the engine walks an index. */
  readonly service: Service | 'never' | undefined;
  /** Set if the engine begins with the rows that a reference names. */
  readonly drive: Begun | undefined;
};

type Begun = {
  readonly field: Field;
  readonly source: { readonly layout: { readonly table: Pick<Table, 'name'> } };
};

export function wayOf(read: Read): Way {
  const { layout, filter, service, drive } = read;
  const { table } = layout;
  if (service === 'never') return { by: 'nothing' };
  if (service !== undefined) {
    const keys =
      service.index === layout.primaryKey
        ? ['id']
        : (layout.indexes.find(({ name }) => name === service.index)?.keys ?? []);
    const fields = keys.length > 1 && keys.at(-1) === 'id' ? keys.slice(0, -1) : keys;
    return { by: service.oneRow ? 'one' : 'index', fields: fields.map((key) => nameOf(table, key)) };
  }
  const isSearched = conjuncts(filter).some((part) => part.op === 'search' && part.words !== undefined);
  if (isSearched && table.words !== undefined) return { by: 'words', fields: table.words.fields };
  if (drive !== undefined) {
    return { by: 'references', field: drive.field.name, table: drive.source.layout.table.name };
  }
  const wanted = wantedIndex(read);
  return { by: 'scan', ...(wanted === undefined ? {} : { wanted: wanted.map(({ name }) => name) }) };
}

function nameOf({ fields }: Table, key: string): string {
  return fields.find((field) => fieldKey(field) === key)?.name ?? key;
}

/** The fields that the filter fixes, then those of the sort: `serve` says if an index over them would do. */
function wantedIndex({ layout, filter, sort }: Read): readonly Field[] | undefined {
  if (isRanked(sort)) return undefined;
  const fields: Field[] = [];
  const add = (field: Field): void => {
    const isKnown = field.column === 'id' || fields.some((known) => fieldKey(known) === fieldKey(field));
    if (!isKnown) fields.push(field);
  };
  for (const part of conjuncts(filter)) if (part.op === 'eq' || part.op === 'absent') add(part.field);
  for (const { field } of sort) add(field);
  if (fields.length === 0) return undefined;
  const keys = [...fields.map(fieldKey), 'id'];
  const served = serve({ ...layout, indexes: [{ name: '', keys, unique: false }] }, filter, sort);
  return typeof served === 'object' && served.index === '' ? fields : undefined;
}

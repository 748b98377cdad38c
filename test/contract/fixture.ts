/** The tables that the contract suite declares, and short ways to write units against them. */
import type { Field, Scalar } from '../../src/model/field.ts';
import { madeFields } from '../../src/model/field.ts';
import type { Filter, Sort } from '../../src/model/filter.ts';
import { type Matchable, memberAt } from '../../src/model/matches.ts';
import type {
  Change,
  Commit,
  EventEntry,
  NextRow,
  Page,
  Plan,
  Row,
  Store,
  Table,
  Unit,
} from '../../src/store/store.ts';

const doc = (name: string, type: Field['type'], item?: Field['item']): Field => ({
  name,
  path: name.split('.'),
  type,
  ...(item === undefined ? {} : { item }),
});

const made = (name: string): Field => {
  const field = madeFields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`no made field ${name}`);
  return field;
};

export const fields = {
  id: made('id'),
  createdAt: made('createdAt'),
  updatedAt: made('updatedAt'),
  owner: { name: 'owner', path: ['owner'], type: 'string', column: 'owner' },
  name: doc('name', 'string'),
  price: doc('price', 'number'),
  stock: doc('stock', 'integer'),
  live: doc('live', 'boolean'),
  due: doc('due', 'timestamp'),
  city: doc('address.city', 'string'),
  tags: doc('tags', 'array', 'string'),
  marks: doc('marks', 'array', 'number'),
  extra: doc('extra', 'json'),
  sku: doc('sku', 'string'),
  categoryId: doc('categoryId', 'string'),
  parentId: doc('parentId', 'string'),
  type: { name: 'type', path: ['type'], type: 'string', column: 'type' },
  collection: { name: 'collection', path: ['collection'], type: 'string', column: 'collection' },
} as const satisfies Readonly<Record<string, Field>>;

export const things: Table = {
  name: 'things',
  fields: Object.values(fields),
  indexes: [
    [fields.price],
    [fields.categoryId, fields.price],
    [fields.name, fields.stock],
    [fields.live],
    [fields.createdAt],
  ],
  unique: [[fields.sku]],
  references: [{ field: fields.categoryId, table: 'categories' }],
  searched: true,
};

export const categories: Table = {
  name: 'categories',
  fields: [fields.id, fields.name, fields.parentId],
  indexes: [[fields.id]],
  unique: [[fields.name]],
  references: [{ field: fields.parentId, table: 'categories' }],
  searched: false,
};

/** Refers to nothing, is referred to by nothing, and holds no value that only one row may. */
export const notes: Table = {
  name: 'notes',
  fields: [fields.id, fields.name],
  indexes: [],
  unique: [],
  references: [],
  searched: false,
};

export const tables: readonly Table[] = [things, categories];

/** Those of the suite itself; other tests know the layout of the two. */
export const suiteTables: readonly Table[] = [...tables, notes];

export type Body = Readonly<Record<string, unknown>>;

export type Made = Partial<Omit<NextRow, 'doc' | 'references'>>;

/** The row of a body: the references that its table has are taken from it. */
export function nextRow(table: Table, id: string, body: Body, made: Made = {}): NextRow {
  const at = made.createdAt ?? 1_700_000_000_000;
  const updated = made.updatedAt ?? at;
  const references: { field: string; id: string }[] = [];
  for (const { field } of table.references) {
    const value = memberAt(body, field.path);
    if (typeof value === 'string') references.push({ field: field.name, id: value });
  }
  const times = { createdAt: new Date(at).toISOString(), updatedAt: new Date(updated).toISOString() };
  return {
    doc: JSON.stringify({ id, ...body, ...times }),
    owner: made.owner ?? null,
    createdAt: at,
    updatedAt: updated,
    deletedAt: made.deletedAt ?? null,
    search: table.searched ? (made.search ?? null) : null,
    references,
  };
}

export function put(table: Table, id: string, body: Body, rev?: number, made?: Made): Change {
  const expect = rev === undefined ? { absent: true as const } : { rev };
  return { table: table.name, id, expect, next: nextRow(table, id, body, made) };
}

export function remove(table: Table, id: string, rev: number): Change {
  return { table: table.name, id, expect: { rev }, next: null };
}

export function event(id: string, collection = 'things', owner: string | null = null): EventEntry {
  const type = `${collection}.created`;
  return { id, type, collection, owner, doc: JSON.stringify({ id, type }), createdAt: 1_700_000_000_000 };
}

export function unit(...parts: readonly (Change | EventEntry)[]): Unit {
  const changes: Change[] = [];
  const events: EventEntry[] = [];
  for (const part of parts) {
    if ('expect' in part) changes.push(part);
    else events.push(part);
  }
  return { changes, events };
}

/** Commits, and fails the test unless it is made. @returns the unit's revision */
export async function commitAll(store: Store, ...parts: readonly (Change | EventEntry)[]): Promise<number> {
  return revOf(await store.commit(unit(...parts)));
}

export function revOf(commit: Commit): number {
  if (commit.outcome !== 'committed') throw new Error(`not committed: ${JSON.stringify(commit)}`);
  return commit.rev;
}

export async function rowAt(store: Store, table: Table, id: string): Promise<Row | undefined> {
  return await store.read(table.name, id);
}

export async function idsOf(
  store: Store,
  filter: Filter,
  sort: readonly Sort[] = byId,
): Promise<readonly string[]> {
  return idsOn(await store.plan({ table: 'things', filter, sort, limit: 10_000 }).page({ from: 'start' }));
}

export function idsOn(page: Page): readonly string[] {
  return page.docs.map((text) => String((JSON.parse(text) as Body).id));
}

export const byId: readonly Sort[] = [{ field: fields.id, direction: 'asc' }];

/** Every page from one end to the other. */
export async function walk(
  plan: Plan,
  way: 'after' | 'before',
  from?: readonly Scalar[],
  pagesMax = Number.POSITIVE_INFINITY,
): Promise<readonly Page[]> {
  const pages: Page[] = [];
  let page = await plan.page(from === undefined ? { from: 'start' } : { from: way, key: from });
  pages.push(page);
  while (page.more && pages.length < pagesMax) {
    const key = way === 'after' ? page.last : page.first;
    if (key === null) throw new Error('an empty page says that more follows');
    page = await plan.page({ from: way, key });
    pages.push(page);
  }
  return pages;
}

/** A stored thing as `matches` looks at it. */
export function matchable(row: NextRow, id: string): Matchable {
  const body: unknown = JSON.parse(row.doc);
  return {
    search: row.search,
    value: (field) => {
      if (field.column === 'id') return id;
      return field.column === 'owner' ? row.owner : memberAt(body, field.path);
    },
  };
}

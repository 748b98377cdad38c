/**
 * Examples from the declaration (`examples`: complete bodies), and others derived from them: the representation, a
 * page, a patch, a query. test/openapi validates each against its schema.
 */

import type { CollectionNames, Item } from '../kernel/documentation.ts';
import type { Collection } from '../model/collection.ts';
import type { Scalar } from '../model/field.ts';
import type { Components } from './components.ts';
import { sortable } from './field-operators.ts';

type Examples = Readonly<Record<string, Item>>;

export type ResourceExamples = {
  readonly input: Examples;
  readonly representation: Examples;
  readonly list: Examples;
  readonly mergePatch: Examples;
  readonly jsonPatch: Examples;
  readonly text: Examples;
};

const createdAt = '2026-08-01T09:30:00.000Z';
const ids = ['01k1jx7v2mh5s8b4c9d0e6f3ga', '01k1jx7v2mq7w1z5x3r8t2y6pb'];

export function resourceExamples(
  collection: Collection,
  names: CollectionNames,
  components: Components,
  idPrefix = '',
): ResourceExamples {
  const bodies = collection.examples;
  const represented = bodies.map((body, index) => ({
    id: `${idPrefix}${idOf(index)}`,
    ...body,
    createdAt,
    updatedAt: createdAt,
  }));
  const keep = (suffix: string, values: readonly unknown[]): Examples =>
    Object.fromEntries(
      values.map((value, index) => {
        const name = `${names.singular}${suffix}${index + 1}`;
        return [name, components.add('examples', name, { value })];
      }),
    );
  const [first] = bodies;
  const patched = first === undefined ? undefined : changeable(collection, first);
  const text = collection.textField === undefined ? undefined : first?.[collection.textField];
  return {
    input: keep('Input', bodies),
    representation: keep('', represented),
    list: bodies.length === 0 ? {} : keep('List', [{ items: represented, nextCursor: null }]),
    mergePatch: patched === undefined ? {} : keep('Patch', [{ [patched[0]]: patched[1] }]),
    jsonPatch:
      patched === undefined
        ? {}
        : keep('JsonPatch', [[{ op: 'replace', path: `/${patched[0]}`, value: patched[1] }]]),
    text: typeof text === 'string' ? keep('Text', [text]) : {},
  };
}

/** A query that finds the first example, in JSON and in SQL. */
export function queryExamples(
  collection: Collection,
  names: CollectionNames,
  components: Components,
): { readonly json: Examples; readonly sql: Examples } {
  const [condition] = conditions(collection);
  const name = `${names.plural}Query`;
  const order = condition?.name ?? 'createdAt';
  const json = {
    ...(condition === undefined ? {} : { filter: { [condition.name]: condition.expected } }),
    sort: [`-${order}`],
    limit: 20,
  };
  const where = condition === undefined ? '' : ` WHERE ${identifier(condition.name)} ${condition.sql}`;
  const sql = `SELECT * FROM ${identifier(collection.name)}${where} ORDER BY ${identifier(order)} DESC LIMIT 20`;
  return {
    json: { [name]: components.add('examples', name, { value: json }) },
    sql: { [`${name}Sql`]: components.add('examples', `${name}Sql`, { value: sql }) },
  };
}

type Condition = { readonly name: string; readonly expected: unknown; readonly sql: string };

/** Conditions on numbers come first: a range shows more of the filter than an equality. */
function conditions(collection: Collection): readonly Condition[] {
  const [first = {}] = collection.examples;
  const found = sortable(collection.fields).flatMap(
    ({ name, path, type }): (Condition & { rank: number })[] => {
      const value = path.length === 1 ? first[path[0] ?? ''] : undefined;
      if (typeof value === 'number') return [{ name, expected: { lte: value }, sql: `<= ${value}`, rank: 0 }];
      if (typeof value === 'boolean') return [{ name, expected: value, sql: `= ${value}`, rank: 1 }];
      if (typeof value !== 'string' || type !== 'string') return [];
      return [{ name, expected: value, sql: `= ${literal(value)}`, rank: 2 }];
    },
  );
  return found.sort((a, b) => a.rank - b.rank);
}

/** A member of the body that a patch may set, with its value. */
function changeable(
  { unpatchable, references }: Collection,
  body: Readonly<Record<string, unknown>>,
): readonly [name: string, value: Scalar] | undefined {
  for (const [name, value] of Object.entries(body)) {
    const isReference = references.some(({ field }) => field === name);
    if (unpatchable.has(name) || isReference || pointerSyntax.test(name)) continue;
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      return [name, value];
  }
  return undefined;
}

/** Characters that a JSON Pointer escapes. */
const pointerSyntax = /[~/]/;

function idOf(index: number): string {
  return ids[index] ?? `${ids[0]?.slice(0, -4)}${String(index).padStart(4, '0')}`;
}

const bareIdentifier = /^[a-z_][a-z0-9_]*$/;

function identifier(name: string): string {
  return bareIdentifier.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Filters: every operation against `matches`, on documents and filters made at random and on chosen traps. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import fc from 'fast-check';
import { type Field, ignoringCase, type Scalar } from '../../src/model/field.ts';
import type { Filter } from '../../src/model/filter.ts';
import { matches } from '../../src/model/matches.ts';
import type { NextRow, Store } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import { type Body, byId, fields, idsOf, matchable, put, things, unit } from './fixture.ts';

const texts = [
  '',
  'a',
  'A',
  'b',
  'ab',
  'a%b',
  'a_b',
  'a*b',
  'a?b',
  'a[b]',
  'a\\b',
  "a'b",
  'é',
  'É',
  '\uffff',
  '😀',
  'true',
  '1',
];
const numbers = [0, -1, 1, 1.5, 2, 1e21, 2 ** 53, -(2 ** 60), 0.1];
const times = ['2024-01-01T00:00:00.000Z', '2024-01-01T00:00:00.001Z', '2025-06-30T12:00:00.000Z'];
const scalars: readonly Scalar[] = [...texts, ...numbers, ...times, true, false, null];

const text = fc.constantFrom(...texts);
const number = fc.constantFrom(...numbers);
const scalar = fc.constantFrom(...scalars);
/** Mostly of the declared type, sometimes of another, as rows of an older declaration are. */
const loose = (own: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 6, arbitrary: own }, scalar, fc.constantFrom<unknown>([], {}, ['a'], { city: 'a' }));

const body = fc.record(
  {
    name: loose(text),
    price: loose(number),
    stock: loose(fc.constantFrom(0, 1, 2)),
    live: loose(fc.boolean()),
    due: loose(fc.constantFrom(...times)),
    address: loose(fc.record({ city: loose(text) }, { requiredKeys: [] })),
    tags: loose(fc.array(scalar, { maxLength: 3 })),
    marks: loose(fc.array(fc.oneof(number, scalar), { maxLength: 3 })),
    extra: loose(fc.constant({ deep: [1] })),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<Body>;

const scalarFields: readonly Field[] = [
  fields.name,
  fields.price,
  fields.stock,
  fields.live,
  fields.due,
  fields.city,
  fields.owner,
  ignoringCase(fields.name),
  ignoringCase(fields.owner),
];
const allFields: readonly Field[] = [...scalarFields, fields.tags, fields.marks, fields.extra];
const field = fc.constantFrom(...allFields);
const pattern = fc
  .array(fc.constantFrom('%', '_', '\\', '\\%', '\\_', 'a', 'b', '*', '?', '[', ']', '^', '-', '😀', 'A'), {
    maxLength: 5,
  })
  .map((parts) => parts.join(''));

const filter: fc.Arbitrary<Filter> = fc.letrec<{ filter: Filter; leaf: Filter }>((tie) => ({
  leaf: fc.oneof(
    fc.record({ op: fc.constantFrom('eq', 'ne', 'gt', 'gte', 'lt', 'lte'), field, value: scalar }),
    fc.record({ op: fc.constant('in'), field, values: fc.array(scalar, { maxLength: 4 }) }),
    fc.record({
      op: fc.constant('has'),
      field: fc.constantFrom<Field>(fields.tags, fields.marks, fields.name),
      value: scalar,
    }),
    fc.record({ op: fc.constant('like'), field, pattern }),
    fc.record({
      op: fc.constant('search'),
      terms: fc.array(fc.constantFrom('a', 'b', 'ab', "'", '%', 'é'), { maxLength: 2 }),
    }),
    fc.constantFrom<Filter>({ op: 'always' }, { op: 'never' }),
  ) as fc.Arbitrary<Filter>,
  filter: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    fc.record({ op: fc.constant('not'), filter: tie('filter') }),
    fc.record({ op: fc.constantFrom('and', 'or'), filters: fc.array(tie('filter'), { maxLength: 3 }) }),
  ) as fc.Arbitrary<Filter>,
})).filter;

/** The rows that filters are asked of, and what they should pass. */
type Sample = {
  readonly store: () => Store;
  readonly rows: ReadonlyMap<string, NextRow>;
  /** The ids of the rows that `matches` passes. */
  readonly expected: (asked: Filter) => readonly string[];
};

/** How many filters are made at random for each of the two tests of them. */
type Runs = { readonly passed: number; readonly negated: number };

/** Few at random: as many as find what is wrong with one operation. test/full/stores/contract.test.ts asks four times as many. */
const few: Runs = { passed: 100, negated: 25 };

export function filterTests(bench: Bench): void {
  const sample = sampleOf(bench);
  randomTests(sample, few);
  comparisonTests(sample);
  trapTests(sample);
  oddNameTests(bench);
}

export function randomFilterTests(bench: Bench, runs: Runs): void {
  randomTests(sampleOf(bench), runs);
}

/** Loads the sample before the tests of the topic. */
function sampleOf({ store }: Bench): Sample {
  const rows = new Map<string, NextRow>();

  async function load(bodies: readonly Body[]): Promise<void> {
    for (const each of bodies) {
      const id = `row ${String(rows.size).padStart(4, '0')}`;
      const chosen = [null, 'a', 'b', '😀'][rows.size % 4] ?? null;
      const search = rows.size % 5 === 0 ? null : texts.slice(rows.size % 7, (rows.size % 7) + 3).join('\n');
      const change = put(things, id, each, undefined, { owner: chosen, search });
      assert.equal((await store().commit(unit(change))).outcome, 'committed');
      if (change.next !== null) rows.set(id, change.next);
    }
  }

  function expected(asked: Filter): readonly string[] {
    return [...rows].filter(([id, row]) => matches(asked, matchable(row, id))).map(([id]) => id);
  }

  before(async () => {
    await load(fc.sample(body, { numRuns: 150, seed: 20_240_101 }));
    await load(
      scalars.flatMap((value) => [{ name: value }, { price: value }, { live: value }, { tags: [value] }]),
    );
  });

  return { store, rows, expected };
}

/** Filters at random. */
function randomTests({ store, rows, expected }: Sample, { passed, negated }: Runs): void {
  test('passes exactly the rows that `matches` passes, for filters at random', async () => {
    await fc.assert(
      fc.asyncProperty(filter, async (asked) => {
        const wanted = expected(asked);
        assert.deepEqual(await idsOf(store(), asked), wanted);
        assert.equal(await store().count('things', asked), wanted.length);
      }),
      { numRuns: passed },
    );
  });

  test('passes under `not` exactly the rows that it keeps back without', async () => {
    await fc.assert(
      fc.asyncProperty(filter, async (asked) => {
        const kept = await idsOf(store(), asked);
        const dropped = await idsOf(store(), { op: 'not', filter: asked });
        assert.deepEqual([...kept, ...dropped].sort(), [...rows.keys()]);
      }),
      { numRuns: negated },
    );
  });
}

/** Every field with every kind of value. */
function comparisonTests({ store, expected }: Sample): void {
  for (const op of ['eq', 'ne', 'gt', 'gte', 'lt', 'lte'] as const) {
    test(`compares every field with every kind of value by ${op}`, async () => {
      for (const each of allFields) {
        await Promise.all(
          scalars.map(async (value) => {
            const asked: Filter = { op, field: each, value };
            assert.deepEqual(await idsOf(store(), asked), expected(asked), JSON.stringify(asked));
          }),
        );
      }
    });
  }

  test('tells true from 1, "1" and "true", in fields and in arrays', async () => {
    for (const value of [true, false, 1, 0, '1', 'true', null]) {
      for (const asked of [
        { op: 'eq', field: fields.live, value },
        { op: 'in', field: fields.live, values: [value] },
        { op: 'has', field: fields.tags, value },
      ] as const) {
        assert.deepEqual(await idsOf(store(), asked), expected(asked), JSON.stringify(asked));
      }
    }
  });
}

/** Patterns and sizes that an engine may take in a way of its own. */
function trapTests({ store, expected }: Sample): void {
  test('takes every special character of a pattern as itself, unless it is one of like', async () => {
    const patterns = [
      '*',
      '?',
      '[ab]',
      '[^a]%',
      'a[b]',
      'a\\%b',
      'a\\_b',
      'a\\\\b',
      'a\\b',
      '%\\',
      'A',
      'a%',
      '_',
      '__',
      '😀',
      "a'b",
      ']',
      '%[%',
    ];
    for (const each of patterns) {
      const asked: Filter = { op: 'like', field: fields.name, pattern: each };
      assert.deepEqual(await idsOf(store(), asked), expected(asked), each);
    }
    assert.deepEqual(
      await idsOf(store(), { op: 'like', field: fields.name, pattern: 'A' }),
      expected({ op: 'eq', field: fields.name, value: 'A' }),
    );
  });

  test('takes lists and trees as long as a body may make them', async () => {
    const values = Array.from({ length: 40_000 }, (_, index) => index + 0.25);
    const many: Filter = { op: 'in', field: fields.price, values: [...values, 1.5] };
    assert.deepEqual(await idsOf(store(), many), expected(many));
    const filters = Array.from(
      { length: 1000 },
      (_, index): Filter => ({ op: 'eq', field: fields.stock, value: index + 1 }),
    );
    for (const op of ['and', 'or'] as const) {
      assert.deepEqual(await idsOf(store(), { op, filters }), expected({ op, filters }));
    }
  });
}

/** Names of fields that would mean something in a statement. */
function oddNameTests({ fresh }: Bench): void {
  test('reads fields of any name, and lets none of them out of its place', async () => {
    const names = [
      'a"b',
      "a'b",
      'a\\b',
      'a.b',
      '$',
      '[0]',
      'é',
      '😀',
      'a\nb',
      '',
      '"',
      '\\',
      '#-1',
      'x" OR 1=1 --',
      "'); DROP TABLE things; --",
    ];
    const odd: Field[] = names.map((name) => ({ name, path: [name], type: 'string' }));
    const nested: Field[] = names.map((name) => ({ name: `in.${name}`, path: ['in', name], type: 'number' }));
    const table = {
      ...things,
      fields: odd,
      indexes: odd.map((each) => [each]),
      unique: nested.map((field) => [field]),
      references: [],
    };
    const opened = await fresh([table]);
    for (const [index, name] of names.entries()) {
      const each = { [name]: `v${index}`, in: { [name]: index } };
      assert.equal((await opened.store.commit(unit(put(table, `odd ${index}`, each)))).outcome, 'committed');
      const again = await opened.store.commit(unit(put(table, 'twice', each)));
      assert.deepEqual(again, { outcome: 'taken', change: 0, fields: [nested[index]?.name] });
    }
    for (const [index, each] of odd.entries()) {
      assert.deepEqual(await idsOf(opened.store, { op: 'eq', field: each, value: `v${index}` }), [
        `odd ${index}`,
      ]);
      const sorted = opened.store.plan({
        table: 'things',
        filter: { op: 'eq', field: each, value: `v${index}` },
        sort: byId,
        limit: 1,
      });
      assert.equal((await sorted.page({ from: 'start' })).docs.length, 1);
    }
    assert.equal(await opened.store.count('things', { op: 'always' }), names.length);
  });
}

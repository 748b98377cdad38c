/** Aggregates: groups and their values against a plain computation over the same documents, at random and on chosen traps. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import fc from 'fast-check';
import type { Field, Scalar } from '../../src/model/field.ts';
import { always, type Filter } from '../../src/model/filter.ts';
import { compareText, memberAt } from '../../src/model/matches.ts';
import { instantKey, instantOfKey } from '../../src/model/timestamp.ts';
import type { AggregateQuery, Group, Measure } from '../../src/store/aggregate.ts';
import type { Store } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import { type Body, categories, fields, put, remove, things, unit } from './fixture.ts';

const texts = ['', 'a', 'A', 'ab', 'é', '\uffff', '😀', 'true', '1', "a'b"];
const numbers = [
  ...[0, 1, -1, 2, 0.1, 0.2, 0.3, -0.7, 19.99, 1e-7, 1 / 3, 1e21, -1e21, 5e-324, 1.7e308],
  ...[2 ** 53, -(2 ** 60), 123_456_789_012_345, 999_999_999.999_999, 1e15, 1e23],
];
const times = ['2024-01-01T00:00:00.000Z', '2025-06-30T12:00:00.000Z'];

const loose = (own: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 8, arbitrary: own }, fc.constantFrom<unknown>(null, true, 'a', 1, [], {}, ['a'], [1]));

const body = fc.record(
  {
    name: loose(fc.constantFrom(...texts)),
    price: loose(fc.oneof(fc.constantFrom(...numbers), fc.double({ noNaN: true, noDefaultInfinity: true }))),
    stock: loose(fc.oneof(fc.integer({ min: -3, max: 3 }), fc.maxSafeInteger())),
    live: loose(fc.boolean()),
    due: loose(fc.constantFrom(...times)),
    address: loose(fc.record({ city: loose(fc.constantFrom(...texts)) }, { requiredKeys: [] })),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<Body>;

const scalarFields: readonly Field[] = [
  ...[fields.name, fields.price, fields.stock, fields.live, fields.due, fields.city, fields.createdAt],
];
const numeric: readonly Field[] = [fields.price, fields.stock];

const measure: fc.Arbitrary<Measure> = fc.oneof(
  fc.constant<Measure>({ of: 'rows' }),
  fc.record({ of: fc.constantFrom('sum', 'avg'), field: fc.constantFrom(...numeric) }),
  fc.record({ of: fc.constantFrom('count', 'min', 'max'), field: fc.constantFrom(...scalarFields) }),
) as fc.Arbitrary<Measure>;

const filter: fc.Arbitrary<Filter> = fc.constantFrom<Filter>(
  always,
  { op: 'never' },
  { op: 'eq', field: fields.live, value: true },
  { op: 'gt', field: fields.price, value: 0 },
  { op: 'not', filter: { op: 'eq', field: fields.name, value: 'a' } },
);

type Stored = { readonly body: Body; readonly at: number };

const largest = 1_000_000;

export function aggregateTests(bench: Bench): void {
  randomTests(bench);
  numberTests(bench);
  boundTests(bench);
  periodTests(bench);
}

/** Moments around the changes of offsets, at the ends of periods, and at both ends of time. */
const moments = [
  ...['2026-03-29T00:59:59Z', '2026-03-29T01:00:00Z', '2026-10-25T00:59:59Z', '2026-10-25T22:59:59Z'],
  ...['2025-12-31T23:30:00Z', '2026-01-04T22:59:59Z', '2026-01-04T23:00:00Z', '2024-02-29T12:00:00.123456Z'],
  ...['1899-12-31T23:59:59Z', '1945-05-24T00:30:00Z', '1970-01-01T00:00:00Z', '2150-07-01T03:59:59Z'],
  ...['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z', '2026-03-08T06:59:59Z', '2026-03-08T07:00:00Z'],
];
const zonesOfTests = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kathmandu',
  'Africa/Casablanca',
  'Pacific/Apia',
];

/** The day that the zone shows, by another part of Intl; from 1900 to 2099 alone. */
function dayIn(timeZone: string, moment: string): string {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  });
  return format.format(new Date(moment));
}

function periodTests({ fresh }: Bench): void {
  test('groups by the day, week, month and year of a time zone, through every change of its offset', async () => {
    const { store } = await fresh([things, categories]);
    const bodies = [...moments, null, 'x', '2026-02-30T00:00:00.000Z', 5].map((due) => ({
      due:
        typeof due === 'string' && due.endsWith('Z') && !due.includes('.') ? due.replace('Z', '.000Z') : due,
    }));
    const changes = bodies.map((each, at) =>
      put(things, `p${at}`, each, undefined, { createdAt: Date.parse('2026-01-04T23:00:00Z') + at }),
    );
    assert.equal((await store.commit(unit(...changes))).outcome, 'committed');
    for (const timeZone of zonesOfTests) {
      for (const period of ['day', 'week', 'month', 'year'] as const) {
        const of = { ...fields.due, period: { unit: period, timeZone } };
        const asked = { table: 'things', filter: always, groupBy: [of, fields.due], measures: [] };
        const found = await store.aggregate({ ...asked, groupsMax: 100, bytesMax: largest });
        assert.ok(found.outcome === 'groups');
        const firsts = new Map(found.groups.map(({ key }) => [key[1], key[0]]));
        for (const moment of moments) {
          const shown = instantOfKey(
            instantKey(moment.includes('.') ? moment : moment.replace('Z', '.000Z')),
          );
          const year = Number(moment.slice(0, 4));
          const first = String(firsts.get(shown));
          if (year > 1900 && year < 2100)
            assert.equal(first, firstOf(period, dayIn(timeZone, moment)), `${timeZone} ${moment}`);
          else assert.match(first, /^\d{4}-\d\d-\d\d$/, `${timeZone} ${moment}`);
        }
        assert.equal(firsts.get('x') ?? firsts.get(null), null, 'what is no instant has no period');
      }
      const of = { ...fields.createdAt, period: { unit: 'week', timeZone } as const };
      const asked = { table: 'things', filter: always, groupBy: [of], measures: [{ of: 'rows' } as const] };
      const found = await store.aggregate({ ...asked, groupsMax: 100, bytesMax: largest });
      assert.ok(found.outcome === 'groups');
      const first = firstOf('week', dayIn(timeZone, '2026-01-04T23:00:00Z'));
      assert.deepEqual(found.groups, [{ key: [first], values: [bodies.length] }], timeZone);
    }
  });
}

function firstOf(period: 'day' | 'week' | 'month' | 'year', day: string): string {
  if (period === 'month') return `${day.slice(0, 7)}-01`;
  if (period === 'year') return `${day.slice(0, 4)}-01-01`;
  const date = new Date(`${day}T00:00:00Z`);
  if (period === 'week') date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
  return date.toISOString().slice(0, 10);
}

function randomTests({ store }: Bench): void {
  const rows: Stored[] = [];

  before(async () => {
    const bodies = fc.sample(body, { numRuns: 300, seed: 20_261_126 });
    for (const [index, each] of bodies.entries()) {
      const made = { createdAt: 1_700_000_000_000 + (index % 3) * 1000 };
      const id = `row ${String(index).padStart(4, '0')}`;
      const commit = await store().commit(unit(put(things, id, each, undefined, made)));
      assert.equal(commit.outcome, 'committed');
      rows.push({ body: JSON.parse(JSON.stringify(each)) as Body, at: made.createdAt });
    }
    const gone = await store().commit(unit(put(things, 'gone', { price: 1, name: 'gone' })));
    assert.ok(gone.outcome === 'committed');
    const deleted = put(things, 'gone', { price: 1, name: 'gone' }, gone.rev, { deletedAt: 1 });
    assert.equal((await store().commit(unit(deleted))).outcome, 'committed');
  });

  test('gives the groups and values of a plain computation, for queries at random', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.constantFrom(...scalarFields), { maxLength: 3 }),
        fc.array(measure, { maxLength: 5 }),
        filter,
        async (groupBy, measures, asked) => {
          const query = queryOf({ groupBy, measures, filter: asked });
          assert.deepEqual(await groupsOf(store(), query), plain(rows, query));
        },
      ),
      { numRuns: 150 },
    );
  });
}

function numberTests({ fresh }: Bench): void {
  test('adds decimals exactly and rounds once', async () => {
    const { store: own } = await fresh();
    const values = [0.1, 0.2, 1e16, 1, -1e16, 1e-20, 2 ** 53, 1, 1];
    for (const [index, price] of values.entries()) {
      await own.commit(unit(put(things, `n${index}`, { price, name: index < 2 ? 'tenths' : 'mixed' })));
    }
    const query = queryOf({
      groupBy: [fields.name],
      measures: [
        { of: 'sum', field: fields.price },
        { of: 'avg', field: fields.price },
      ],
    });
    assert.deepEqual(await groupsOf(own, query), [
      { key: ['mixed'], values: [9007199254740996, 1286742750677285] },
      { key: ['tenths'], values: [0.3, 0.15] },
    ]);
  });

  test('gives null for a sum beyond the greatest double, and its mean', async () => {
    const { store: own } = await fresh();
    for (const id of ['a', 'b']) await own.commit(unit(put(things, id, { price: 1.7e308 })));
    const measures: readonly Measure[] = [
      { of: 'sum', field: fields.price },
      { of: 'avg', field: fields.price },
      { of: 'max', field: fields.price },
    ];
    assert.deepEqual(await groupsOf(own, queryOf({ measures })), [
      { key: [], values: [null, 1.7e308, 1.7e308] },
    ]);
  });

  test('gives one group of no rows without groupBy, and none with it', async () => {
    const { store: own } = await fresh();
    const measures: readonly Measure[] = [
      { of: 'rows' },
      { of: 'count', field: fields.price },
      ...(['sum', 'avg', 'min', 'max'] as const).map((of) => ({ of, field: fields.price })),
    ];
    const none = [{ key: [], values: [0, 0, null, null, null, null] }];
    assert.deepEqual(await groupsOf(own, queryOf({ measures })), none);
    assert.deepEqual(await groupsOf(own, queryOf({ measures, groupBy: [fields.name] })), []);
  });
}

function boundTests({ fresh }: Bench): void {
  test('says that groups or their octets pass a bound, exactly at the bound', async () => {
    const { store: own } = await fresh();
    for (const [index, name] of ['aa', 'bb', 'éé'].entries()) {
      await own.commit(unit(put(things, `b${index}`, { name })));
    }
    const query = queryOf({ groupBy: [fields.name], measures: [{ of: 'max', field: fields.name }] });
    const octets = 2 * (2 + 2 + 4);
    const fits = await own.aggregate({ ...query, groupsMax: 3, bytesMax: octets });
    assert.equal(fits.outcome, 'groups');
    assert.deepEqual(await own.aggregate({ ...query, groupsMax: 2 }), { outcome: 'exceeded', by: 'groups' });
    assert.deepEqual(await own.aggregate({ ...query, bytesMax: octets - 1 }), {
      outcome: 'exceeded',
      by: 'octets',
    });
  });

  test('gives the version of the table in the snapshot of the groups', async () => {
    const { store: own } = await fresh();
    const query = queryOf({ measures: [{ of: 'rows' }] });
    const versions: string[] = [];
    for (const id of ['a', 'b']) {
      const commit = await own.commit(unit(put(things, id, {})));
      const found = await own.aggregate(query);
      assert.ok(found.outcome === 'groups' && commit.outcome === 'committed');
      assert.equal(found.version, await own.version('things'));
      versions.push(found.version);
      if (id === 'b') await own.commit(unit(remove(things, id, commit.rev)));
    }
    assert.equal(new Set(versions).size, 2);
  });
}

function queryOf(parts: Partial<AggregateQuery>): AggregateQuery {
  return {
    ...{ table: 'things', filter: always, groupBy: [], measures: [] },
    ...{ groupsMax: 1000, bytesMax: largest },
    ...parts,
  };
}

async function groupsOf(store: Store, query: AggregateQuery): Promise<readonly Group[]> {
  const found = await store.aggregate(query);
  assert.ok(found.outcome === 'groups', JSON.stringify(found));
  return inOrder(found.groups);
}

function inOrder(groups: readonly Group[]): readonly Group[] {
  const text = (group: Group) => JSON.stringify(group.key);
  return [...groups].sort((one, other) => compareText(text(one), text(other)));
}

/** The same over documents in memory, with every sum as a fraction of integers. */
function plain(
  rows: readonly Stored[],
  { groupBy, measures, filter: asked }: AggregateQuery,
): readonly Group[] {
  const groups = new Map<string, { key: readonly Scalar[]; members: Stored[] }>();
  if (groupBy.length === 0) groups.set('[]', { key: [], members: [] });
  for (const row of rows) {
    if (!passes(row, asked)) continue;
    const key = groupBy.map((field) => memberOf(row, field));
    const found = groups.get(JSON.stringify(key)) ?? { key, members: [] };
    found.members.push(row);
    groups.set(JSON.stringify(key), found);
  }
  return inOrder(
    [...groups.values()].map(({ key, members }) => ({
      key,
      values: measures.map((each) => valueFor(each, members)),
    })),
  );
}

function passes(row: Stored, asked: Filter): boolean {
  if (asked.op === 'always' || asked.op === 'never') return asked.op === 'always';
  if (asked.op === 'not') return !passes(row, asked.filter);
  if (asked.op === 'gt') {
    const value = memberOf(row, asked.field);
    return typeof value === 'number' && value > Number(asked.value);
  }
  return asked.op === 'eq' && memberOf(row, asked.field) === asked.value;
}

function memberOf(row: Stored, field: Field): Scalar {
  if (field.column === 'createdAt') return new Date(row.at).toISOString();
  const value = memberAt(row.body, field.path);
  const wanted = field.type === 'number' || field.type === 'integer' ? 'number' : field.type;
  const type = wanted === 'timestamp' ? 'string' : wanted;
  return typeof value === type ? (value as Scalar) : null;
}

function valueFor(asked: Measure, members: readonly Stored[]): Scalar {
  if (asked.of === 'rows') return members.length;
  const values = members
    .map((row) => memberOf(row, asked.field))
    .filter((value): value is string | number | boolean => value !== null);
  if (asked.of === 'count') return values.length;
  if (values.length === 0) return null;
  if (asked.of === 'min' || asked.of === 'max') {
    const sorted = [...values].sort((one, other) =>
      typeof one === 'string' ? compareText(one, String(other)) : Number(one) - Number(other),
    );
    return (asked.of === 'min' ? sorted[0] : sorted.at(-1)) ?? null;
  }
  const unitDigits = 400;
  let sum = 0n;
  for (const value of values) sum += scaled(value as number, unitDigits);
  const divisor = asked.of === 'avg' ? BigInt(values.length) : 1n;
  // 600 more digits decide every rounding of these few numbers.
  const quotient = (sum * 10n ** 600n) / divisor;
  const result = Number(`${quotient}e-${unitDigits + 600}`) + 0;
  return Number.isFinite(result) ? result : null;
}

/** The shortest decimal of the number, times ten to the power of `digits`. */
function scaled(value: number, digits: number): bigint {
  const [mantissa = '', power = '0'] = String(value).split('e');
  const [whole = '', part = ''] = mantissa.split('.');
  return BigInt(whole + part) * 10n ** BigInt(digits + Number(power) - part.length);
}

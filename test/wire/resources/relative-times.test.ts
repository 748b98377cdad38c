/** Filters by times relative to the present (§4.2.10), with a clock that the test moves, in each language, with their caches. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import type { Answer } from '../../harness/exchange.ts';
import { openHouse } from './house-of-rules.ts';
import type { Shop } from './shop-of-many.ts';

const access = { read: 'public', create: 'principal', update: 'principal', delete: 'principal' } as const;
const configuration = resolveConfiguration({
  collections: {
    plans: { schema: Type.Object({ startsAt: Type.String({ format: 'date-time' }) }), access },
    tasks: {
      schema: Type.Object({
        name: Type.String(),
        due: Type.Optional(Type.String({ format: 'date' })),
        at: Type.Optional(Type.Union([Type.String({ format: 'date-time' }), Type.Null()])),
        days: Type.Optional(Type.Array(Type.String({ format: 'date' }))),
        note: Type.Optional(Type.String()),
        planId: Type.Optional(Type.String()),
        done: Type.Optional(Type.Boolean()),
      }),
      references: { planId: { collection: 'plans' } },
      access,
      cacheControl: 'public, max-age=3600',
    },
  },
});

const path = '/api/v1/tasks';
const clockMs = Date.parse('2026-12-01T22:30:00.000Z');
const tasks = [
  { name: 'early', due: '2026-11-30', at: '2026-11-24T22:30:00Z', days: ['2026-11-30'] },
  { name: 'today', due: '2026-12-01', at: '2026-12-01T22:00:00Z', days: ['2026-12-01', '2026-12-24'] },
  { name: 'night', due: '2026-12-02', at: '2026-12-01T22:59:59.999Z', note: 'today' },
  { name: 'late', due: '2026-12-31', at: '2026-12-31T00:00:00Z' },
];

describeOnEachStore('relative times', (engine) => {
  let shop: Shop;

  before(async () => {
    shop = await openHouse(engine, { configuration, clockMs });
    const plan = await shop.as('root', 'POST', '/api/v1/plans', {
      json: { startsAt: '2026-12-01T00:00:00Z' },
    });
    for (const task of tasks) {
      const json = task.name === 'late' ? { ...task, planId: plan.json().id } : task;
      assert.equal((await shop.as('root', 'POST', path, { json })).status, 201);
    }
  });

  after(() => shop.stop());

  const get = (query: string, headers = {}): Promise<Answer> =>
    shop.as(undefined, 'GET', `${path}?sort=due&${query}`, { headers });
  const namesOf = (answer: Answer): unknown => {
    assert.equal(answer.status, 200, answer.body);
    return answer.json().items.map(({ name }: { name: string }) => name);
  };
  const query = (type: string, body: string): Promise<Answer> =>
    shop.as(undefined, 'QUERY', path, { headers: { 'Content-Type': type }, body });

  const found: readonly (readonly [query: string, names: readonly string[]])[] = [
    ['due[lt]=today', ['early']],
    ['due=today', ['today']],
    ['due=now', ['today']],
    ['due=today[Europe/Berlin]', ['today']],
    ['due=today[Asia/Tokyo]', ['night']],
    ['due[lt]=today%2BP1D', ['early', 'today']],
    ['due[in]=today,today-P1D', ['early', 'today']],
    ['due[ne]=today', ['early', 'night', 'late']],
    ['due[gte]=thisMonth&due[lt]=thisMonth%2BP1M', ['today', 'night', 'late']],
    ['at[lt]=now', ['early', 'today']],
    ['at[gte]=now-P7D', ['early', 'today', 'night', 'late']],
    ['at[gt]=now-P7D', ['today', 'night', 'late']],
    ['at[gte]=today&at[lt]=today%2BP1D', ['today', 'night']],
    ['at[gte]=today%2BP1D[Europe/Berlin]', ['late']],
    ['at[lt]=now%2BPT30M', ['early', 'today', 'night']],
    ['days=today', ['today']],
    ['days[in]=today-P1D,today', ['early', 'today']],
    // A text is a text.
    ['note=today', ['night']],
    ['createdAt[gte]=now', ['early', 'today', 'night', 'late']],
    ['createdAt[gt]=now', []],
    ['planId.startsAt=today', ['late']],
    ['planId.startsAt[lt]=today', []],
  ];
  for (const [filter, names] of found) {
    test(`filters by ${filter}`, async () => {
      assert.deepEqual(namesOf(await get(filter)), names);
      // The second and the third request are answered from what the first has compiled.
      assert.deepEqual(namesOf(await get(filter)), names);
    });
  }

  test('filters alike in each language', async () => {
    const json = JSON.stringify({ filter: { due: { lt: 'today' } } });
    assert.deepEqual(namesOf(await query('application/json', json)), ['early']);
    assert.deepEqual(namesOf(await query('application/x-www-form-urlencoded', 'due[lt]=today')), ['early']);
    const between = `SELECT name FROM tasks WHERE at BETWEEN 'today' AND 'now' OR due IN ('today+P1D')`;
    assert.deepEqual(namesOf(await query('application/sql', `${between} ORDER BY due`)), ['today', 'night']);
    const groups = {
      groupBy: ['due'],
      aggregate: { max: ['at'] },
      having: { max_at: { gt: 'now' } },
      sort: ['due'],
    };
    const answer = await query('application/json', JSON.stringify(groups));
    assert.deepEqual(
      answer.json().items.map(({ due }: { due: string }) => due),
      ['2026-12-02', '2026-12-31'],
    );
  });

  test('refuses an unknown time zone and other spellings, and says what is taken', async () => {
    for (const [filter, message] of [
      [
        'at[lt]=now[Mars/Olympus]',
        /not "now\[Mars\/Olympus\]"; the IANA database has no time zone "Mars\/Olympus"/,
      ],
      [
        'due[lt]=today[Mars/Olympus]',
        /due takes a day such as 2026-01-31, or a time relative to the present, such as/,
      ],
      ['at[lt]=now+P1D', /write "\+" as %2B in a URL/],
      ['at[lt]=yesterday', /or a time relative to the present, such as today, now-P7D or thisMonth/],
      ['at[in]=now,nows', /not "nows"/],
    ] as const) {
      const refused = await get(filter);
      assert.equal(refused.status, 400, refused.body);
      assert.match(refused.json().error, message);
    }
    const sql = await query('application/sql', `SELECT name FROM tasks WHERE at < 'now[Mars/Olympus]'`);
    assert.equal(sql.status, 422);
    const json = await query('application/json', '{"filter": {"at": {"lt": "now-P1"}}}');
    assert.equal(json.json().errors[0].pointer, '/filter/at/lt');
  });

  test('changes documents that a relative time finds', async () => {
    const json = { filter: { due: { lt: 'today' }, name: 'early' }, patch: { done: true } };
    const changed = await shop.as('root', 'PATCH', path, { json });
    assert.deepEqual(changed.json(), { changed: 1, unchanged: 0, refused: 0 });
  });

  test('has an entity tag of the moment, and is not fresh for the time that documents are', async () => {
    const plain = await get('name=early');
    assert.equal(plain.headers['cache-control'], 'public, max-age=3600');
    const today = await get('due=today');
    assert.equal(today.headers['cache-control'], 'no-cache');
    const matching = { 'If-None-Match': String(today.headers.etag) };
    const same = await get('due=today', matching);
    assert.deepEqual([same.status, same.headers['cache-control']], [304, 'no-cache']);
    const present = await get('at[lt]=now');
    const ofPresent = { 'If-None-Match': String(present.headers.etag) };
    assert.equal((await get('at[lt]=now', ofPresent)).status, 304, 'the clock stands still');
    shop.moveClock(1);
    assert.equal((await get('at[lt]=now', ofPresent)).status, 200, 'a second later');
    assert.equal((await get('due=today', matching)).status, 304, 'the same day');
    shop.moveClock(2 * 3600);
    const tomorrow = await get('due=today', matching);
    assert.deepEqual(namesOf(tomorrow), ['night']);
    shop.moveClock(-2 * 3600 - 1);
  });

  test('a stored query finds what it means now, and its first result as long as it is kept', async () => {
    const answer = await query('application/json', '{"filter": {"due": "today"}, "fields": ["name"]}');
    assert.equal(answer.headers['cache-control'], 'no-cache');
    const { location, 'content-location': result, etag } = answer.headers;
    const repeat = (target: unknown, headers = {}) => shop.as(undefined, 'GET', String(target), { headers });
    assert.deepEqual(namesOf(await repeat(location)), ['today']);
    shop.moveClock(2 * 3600);
    const later = await repeat(location, { 'If-None-Match': String(etag) });
    assert.deepEqual(namesOf(later), ['night']);
    assert.equal(later.headers['cache-control'], 'no-cache');
    const first = await repeat(result);
    if (first.status !== 410) assert.deepEqual(namesOf(first), ['today']);
    shop.moveClock(-2 * 3600);
    assert.deepEqual(namesOf(await repeat(result)), ['today']);
  });

  test('a cursor goes on at a later time', async () => {
    const first = await get('at[lt]=now%2BP365D&limit=2');
    assert.deepEqual(namesOf(first), ['early', 'today']);
    shop.moveClock(5);
    const next = await get(`at[lt]=now%2BP365D&limit=2&cursor=${first.json().nextCursor}`);
    assert.deepEqual(namesOf(next), ['night', 'late']);
    const other = await get(`at[lt]=now%2BP366D&limit=2&cursor=${first.json().nextCursor}`);
    assert.equal(other.status, 400);
    shop.moveClock(-5);
  });
});

/** Which migrations are pending, in which order they run, and which contradict what was made. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import { inspectMigrations } from '../../src/config/migrations.ts';
import { type MigrationRows, migrationState, type RunRow } from '../../src/migrations/migration-state.ts';

const schema = Type.Object({ name: Type.String() });
const collections = resolveCollections({ tickets: { schema }, teams: { schema } });

function declare(...migrations: readonly (readonly [id: string, collection: string])[]) {
  const mistakes: string[] = [];
  const written = migrations.map(([id, collection]) => ({
    id,
    collection,
    up: (document: object) => document,
  }));
  const declared = inspectMigrations(written, collections, mistakes);
  assert.deepEqual(mistakes, []);
  return { migrations: declared, collections };
}

function rows(
  made: readonly (readonly [id: string, collection: string])[],
  begun: readonly string[] = [],
): MigrationRows {
  const run: RunRow = {
    ...{ kind: 'run', collection: 'tickets', migrations: begun, phase: 'pass', began: 1, after: null },
    ...{ documents: 0, changed: 0, runner: 'p', startedAt: '2026-01-01T00:00:00.000Z' },
  };
  return {
    shapes: new Map(),
    runs: begun.length === 0 ? new Map() : new Map([['tickets', { row: run, rev: 1, createdAt: 1 }]]),
    made: made.map(([migration, collection], order) => ({
      ...{ kind: 'made', migration, collection, order, madeAt: '2026-01-01', documents: 0, changed: 0 },
      program: '0.1.0',
    })),
  };
}

const runsOf = ({ runs }: ReturnType<typeof migrationState>) =>
  runs.map(({ collection, migrations, isLast }) => [collection, migrations.map(({ id }) => id), isLast]);

test('runs the pending migrations of a collection together, in their order', () => {
  const declared = declare(['a', 'tickets'], ['b', 'teams'], ['c', 'tickets'], ['d', 'tickets']);
  const state = migrationState(declared, rows([['a', 'tickets']]));
  assert.deepEqual(runsOf(state), [
    ['teams', ['b'], true],
    ['tickets', ['c', 'd'], true],
  ]);
  assert.deepEqual(state.contradictions, []);
});

test('ends a run that has begun before it begins one with later migrations', () => {
  const state = migrationState(
    declare(['a', 'tickets'], ['b', 'tickets'], ['c', 'tickets']),
    rows([], ['a', 'b']),
  );
  assert.deepEqual(runsOf(state), [
    ['tickets', ['a', 'b'], false],
    ['tickets', ['c'], true],
  ]);
});

test('tells made migrations that are gone or in another order, begun ones that are gone, and new ones before made ones', () => {
  const made = rows([
    ['a', 'tickets'],
    ['b', 'tickets'],
  ]);
  const told = (...ids: readonly string[]) =>
    migrationState(declare(...ids.map((id) => [id, 'tickets'] as const)), made).contradictions;
  assert.match(
    told('a').join(),
    /^the migration b of tickets was made 2026-01-01 \(comity 0.1.0\), and is not declared: /,
  );
  assert.match(
    told('b', 'a').join(),
    /^the migration b was made after a, and is declared before it: restore the order/,
  );
  assert.match(told('c', 'a', 'b').join(), /^the migration c is declared before b, which was made already: /);
  assert.deepEqual(told('a', 'b', 'c'), []);
  const { contradictions } = migrationState(declare(['a', 'tickets']), rows([], ['a', 'gone']));
  assert.match(
    contradictions.join(),
    /^the migration gone of tickets has begun, and is no longer declared: /,
  );
});

test('lets migrations of different collections be declared in any order', () => {
  const { contradictions } = migrationState(
    declare(['t', 'teams'], ['a', 'tickets']),
    rows([['a', 'tickets']]),
  );
  assert.deepEqual(contradictions, []);
});

const mistakes: readonly (readonly [title: string, written: unknown, told: RegExp])[] = [
  ['an object', {}, /^migrations must be a list such as .*, not an object$/],
  ['a text', ['a'], /^migrations\[0\] must be an object, not a string$/],
  [
    'no id',
    [{ collection: 'tickets', up: () => ({}) }],
    /^migrations\[0\]\.id must be a text of 1 to 100 letters/,
  ],
  [
    'no function',
    [{ id: 'a', collection: 'tickets' }],
    /^migrations\[0\]\.up must be a function of the document, not undefined$/,
  ],
  [
    'an async function',
    [{ id: 'a', collection: 'tickets', up: async () => ({}) }],
    /^migrations\[0\]\.up must not be async/,
  ],
  [
    'another member',
    [{ id: 'a', collection: 'tickets', up: () => ({}), dwn: 1 }],
    /^migrations\[0\]\.dwn is not a property/,
  ],
  [
    'a misspelt collection',
    [{ id: 'a', collection: 'tikets', up: () => ({}) }],
    /^migrations\[0\]\.collection names "tikets", which is not a collection; did you mean tickets/,
  ],
  [
    'a flag that is none',
    [{ id: 'a', collection: 'tickets', up: () => ({}), touch: 'yes' }],
    /^migrations\[0\]\.touch must be true or false/,
  ],
  [
    'a removal of what is declared',
    [{ id: 'a', collection: 'tickets', removed: true }],
    /^migrations\[0\]\.removed: tickets is a collection/,
  ],
];

for (const [title, written, told] of mistakes) {
  test(`refuses ${title} among migrations`, () => {
    const found: string[] = [];
    inspectMigrations(written, collections, found);
    assert.equal(found.length, 1, found.join('\n'));
    assert.match(String(found[0]), told);
  });
}

test('refuses an id that two migrations have', () => {
  const found: string[] = [];
  const one = { id: 'a', collection: 'tickets', up: () => ({}) };
  inspectMigrations([one, { ...one, collection: 'teams' }], collections, found);
  assert.deepEqual(found, [
    'migrations[1].id "a" is that of an earlier migration; give each an id of its own',
  ]);
});

/** Which units of a batch have to do with each other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { interacts } from '../../../src/store/postgres/commit/committer.ts';
import type { Change, Unit } from '../../../src/store/store.ts';
import { categories, event, put, remove, things, unit } from '../../contract/fixture.ts';
import { resolved, tables } from './pure.ts';

const cases: readonly { readonly title: string; readonly units: readonly Unit[]; readonly meet: boolean }[] =
  [
    {
      title: 'one unit, whatever it does',
      units: [unit(put(things, 'a', {}), remove(things, 'a', 1))],
      meet: false,
    },
    {
      title: 'units that change different rows and append different events',
      units: [unit(put(things, 'a', {}), event('1')), unit(put(things, 'b', {}), event('2'))],
      meet: false,
    },
    {
      title: 'rows of one id in different tables',
      units: [unit(put(things, 'a', {})), unit(put(categories, 'a', {}))],
      meet: false,
    },
    {
      title: 'two rows that name the same one',
      units: [unit(put(things, 'a', { categoryId: 'c' })), unit(put(things, 'b', { categoryId: 'c' }))],
      meet: false,
    },
    {
      title: 'a row changed twice',
      units: [unit(put(things, 'a', {}, 1)), unit(put(things, 'a', {}, 1))],
      meet: true,
    },
    {
      title: 'a row that is expected absent and made',
      units: [{ changes: [expectAbsent('a')], events: [] }, unit(put(things, 'a', {}))],
      meet: true,
    },
    {
      title: 'a row that is made and expected absent',
      units: [unit(put(things, 'a', {})), { changes: [expectAbsent('a')], events: [] }],
      meet: true,
    },
    {
      title: 'a row that is expected absent by all and made by none',
      units: [
        { changes: [expectAbsent('a')], events: [event('1')] },
        { changes: [put(things, 'b', {}), expectAbsent('a')], events: [event('2')] },
        { changes: [expectAbsent('a'), expectAbsent('a')], events: [] },
      ],
      meet: false,
    },
    {
      title: 'a row that two expect absent and a third makes',
      units: [
        { changes: [expectAbsent('a')], events: [] },
        { changes: [expectAbsent('a')], events: [] },
        unit(put(things, 'a', {})),
      ],
      meet: true,
    },
    { title: 'an event appended twice', units: [unit(event('1')), unit(event('1'))], meet: true },
    {
      title: 'an event that is appended and a row of events of its id',
      units: [unit(event('1')), unit({ table: 'events', id: '1', expect: { rev: 1 }, next: null })],
      meet: true,
    },
    {
      title: 'a row that is named and changed later',
      units: [unit(put(things, 'a', { categoryId: 'c' })), unit(put(categories, 'c', {}, 1))],
      meet: true,
    },
    {
      title: 'a row that is changed and named later',
      units: [unit(put(categories, 'c', {}, 1)), unit(put(things, 'a', { categoryId: 'c' }))],
      meet: true,
    },
    {
      title: 'a row that two name, one of which changes it',
      units: [
        unit(put(things, 'a', { categoryId: 'c' })),
        unit(put(things, 'b', { categoryId: 'c' }), put(categories, 'c', {}, 1)),
      ],
      meet: true,
    },
    {
      title: 'a removal and a change of a table that refers to the removed row’s',
      units: [unit(remove(categories, 'c', 1)), unit(put(things, 'a', {}))],
      meet: true,
    },
    {
      title: 'the same the other way round, softly',
      units: [unit(remove(things, 'a', 1)), unit(put(categories, 'c', {}, 1, { deletedAt: 1 }))],
      meet: true,
    },
    {
      title: 'removals of a table that nothing refers to',
      units: [unit(remove(things, 'a', 1)), unit(remove(things, 'b', 1))],
      meet: false,
    },
    {
      title: 'removals of a table that refers to itself',
      units: [unit(remove(categories, 'a', 1)), unit(remove(categories, 'b', 1))],
      meet: true,
    },
  ];

function expectAbsent(id: string): Change {
  return { table: 'things', id, expect: { absent: true }, next: null };
}

for (const { title, units, meet } of cases) {
  test(`${meet ? 'keeps apart' : 'takes together'} ${title}`, () => {
    assert.equal(interacts(units.map(resolved), tables), meet);
  });
}

test('finds the one unit among many that meets another', () => {
  const many = Array.from({ length: 300 }, (_, index) =>
    unit(put(things, `t${index}`, {}), event(`e${index}`)),
  );
  assert.equal(interacts(many.map(resolved), tables), false);
  assert.equal(interacts([...many, unit(put(things, 't17', {}))].map(resolved), tables), true);
});

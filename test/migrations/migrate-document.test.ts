/** One document through migrations: what `up` may return, what it may not, and what is stored. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import type { DeclaredMigration } from '../../src/config/migrations.ts';
import { compileValidator } from '../../src/kernel/content/validator.ts';
import { lookAtDocument, migrateDocument, type Passage } from '../../src/migrations/document-work.ts';
import { computed } from '../../src/model/collection.ts';

const [collection] = resolveCollections({
  people: {
    schema: Type.Object({
      first: Type.String(),
      last: Type.String(),
      role: Type.String({ default: 'agent' }),
      teamId: Type.Optional(Type.String()),
    }),
    computed: { full: computed(Type.String(), ({ first, last }) => `${first} ${last}`) },
    search: ['last'],
    references: { teamId: { collection: 'people' } },
  },
}).values();
assert.ok(collection);
const doc =
  '{"id":"p1","name":"Ada Lovelace","teamId":"p2","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-02T00:00:00.000Z"}';
const candidate = {
  ...{ id: 'p1', doc, owner: 'usr_1', isOlder: true },
  ...{ createdAt: Date.UTC(2026, 0, 1), updatedAt: Date.UTC(2026, 0, 2) },
};
const now = Date.UTC(2026, 5, 1);

type Up = (document: Record<string, unknown>) => unknown;

function passageOf(...ups: readonly (Up | Partial<DeclaredMigration>)[]): Passage {
  assert.ok(collection);
  const migrations = ups.map((up, index) => ({
    ...{ id: `m${index}`, collection: 'people', events: false, touch: false, up: undefined },
    ...(typeof up === 'function' ? { up } : up),
  }));
  return {
    ...{ collection, validator: compileValidator(collection), migrations, isLast: true },
    ...{ documentCharactersMax: 1000, describe: (error) => String(error) },
  };
}

const split: Up = ({ name, ...rest }) => {
  const [first, last] = String(name).split(' ');
  return { ...rest, first, last };
};

test('stores the new shape as a write would: in order, with defaults, computed fields, search text and references', () => {
  const migrated = migrateDocument(passageOf(split), candidate, now);
  assert.ok(migrated.kind === 'changed');
  // The words are those of a write (test/model/search).
  assert.match(String(migrated.next.search), / lovelace /);
  const { search: _, ...next } = migrated.next;
  assert.deepEqual(next, {
    doc: '{"id":"p1","first":"Ada","last":"Lovelace","role":"agent","teamId":"p2","full":"Ada Lovelace","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-02T00:00:00.000Z"}',
    ...{ owner: 'usr_1', createdAt: candidate.createdAt, updatedAt: candidate.updatedAt, deletedAt: null },
    references: [{ field: 'teamId', id: 'p2' }],
  });
  const touched = migrateDocument(passageOf({ up: split, touch: true }), candidate, now);
  assert.ok(touched.kind === 'changed');
  assert.deepEqual([touched.next.updatedAt, touched.next.createdAt], [now, candidate.createdAt]);
});

test('leaves a document alone that no migration changes, and one written since that fits', () => {
  const migrated = migrateDocument(passageOf(split), candidate, now);
  assert.ok(migrated.kind === 'changed');
  const made = { ...candidate, doc: migrated.next.doc };
  assert.deepEqual(
    migrateDocument(
      passageOf((document) => document),
      made,
      now,
    ),
    { kind: 'stays' },
  );
  let calls = 0;
  const counting = passageOf((document) => {
    calls += 1;
    return { ...document, role: 'other' };
  });
  assert.deepEqual(migrateDocument(counting, { ...made, isOlder: false }, now), { kind: 'stays' });
  assert.equal(calls, 0);
  assert.equal(migrateDocument(counting, made, now).kind, 'changed');
  assert.equal(migrateDocument(passageOf(split), { ...candidate, isOlder: false }, now).kind, 'changed');
});

const garbage: readonly (readonly [title: string, up: Up, pointer: string, message: RegExp])[] = [
  ['nothing', () => undefined, '', /^up returned undefined: return the document$/],
  ['a list', () => [], '', /^up returned a list: return the document$/],
  ['null', () => null, '', /^up returned null: return the document$/],
  ['a text', () => 'text', '', /^up returned a string: return the document$/],
  ['a promise', async (document) => document, '', /^up returned a promise: it must be synchronous$/],
  ['a rejection', () => Promise.reject(new Error('lost')), '', /^up returned a promise/],
  ['a cycle', (document) => Object.assign(document, { document }), '', /^up returned what is no JSON: /],
  ['a BigInt', (document) => ({ ...document, rank: 1n }), '', /^up returned what is no JSON: /],
  ['a toJSON that is no document', () => new Date(0), '', /^up returned an object: return the document$/],
  ['another id', (document) => ({ ...document, id: 'p9' }), '/id', /^must stay as it is/],
  ['another time', (document) => ({ ...document, updatedAt: 'now' }), '/updatedAt', /^must stay as it is/],
  ['a misfit', ({ id }) => ({ id, first: 'a', last: 7 }), '/last', /must be a string/],
  ['less', ({ id }) => ({ id, first: 'a' }), '/last', /is required/],
  ['more', (document) => ({ first: 'a', last: 'b', ...document }), '/name', /./],
  ['U+0000', () => ({ first: '\0', last: 'b' }), '/first', /must not contain U\+0000/],
  ['too much', () => ({ first: 'a'.repeat(1000), last: 'b' }), '', /^would be longer than 1000 characters$/],
];

for (const [title, up, pointer, message] of garbage) {
  test(`refuses an up that returns ${title}`, () => {
    const migrated = migrateDocument(passageOf(up), candidate, now);
    assert.ok(migrated.kind === 'failed');
    assert.equal(migrated.failure.pointer, pointer);
    assert.match(migrated.failure.message, message);
  });
}

test('holds only the last result to the schema, and says which migrations change a document', () => {
  const passage = passageOf(
    ({ name, ...rest }) => ({ ...rest, whole: name }),
    (document) => document,
    ({ whole, ...rest }) => split({ ...rest, name: whole }),
  );
  const looked = lookAtDocument(passage, candidate, now);
  assert.deepEqual(looked.changedBy, ['m0', 'm2']);
  assert.deepEqual(looked.fault, { pointer: '/first', message: 'is required' });
  assert.equal(looked.failure, undefined);
  const halfway = { ...passageOf(({ name, ...rest }) => ({ ...rest, whole: name })), isLast: false };
  const migrated = migrateDocument(halfway, candidate, now);
  assert.ok(migrated.kind === 'changed');
  assert.match(migrated.next.doc, /^\{"id":"p1","teamId":"p2","whole":"Ada Lovelace",|"role":"agent"/);
});

test('gives up a copy, so that a document which up changed before it failed stays as it was', () => {
  const given: unknown[] = [];
  const passage = passageOf((document) => {
    given.push(document);
    document.name = 'changed';
    throw new Error('later');
  });
  const migrated = migrateDocument(passage, candidate, now);
  assert.ok(migrated.kind === 'failed');
  assert.deepEqual([migrated.failure.migration, migrated.failure.message], ['m0', 'Error: later']);
  assert.equal(candidate.doc, doc);
});

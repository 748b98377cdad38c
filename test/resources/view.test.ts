/** What a principal sees of a collection (§5.1): the stored text untouched where nothing is hidden, and exactly the rest where something is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import type { CollectionDeclaration } from '../../src/model/collection.ts';
import { anonymous, authenticated } from '../../src/model/principal.ts';
import { createViews, seenBy } from '../../src/resources/collection/view.ts';

const schema = Type.Object({
  name: Type.String(),
  pay: Type.Optional(Type.Number()),
  home: Type.Optional(Type.Object({ city: Type.String() })),
  memo: Type.Optional(Type.String()),
});

function viewsOf(declaration: Omit<CollectionDeclaration, 'schema'>) {
  const collection = resolveCollections({ people: { schema, ...declaration } }).get('people');
  assert.ok(collection);
  return createViews(collection);
}

const ada = authenticated({ id: 'ada', scopes: ['read'] });
const hr = authenticated({ id: 'hana', scopes: ['read'], roles: ['hr'] });
const root = authenticated({ id: 'root', scopes: ['admin'] });
const hidden = { pay: { anyOf: ['owner', { role: 'hr' }] }, home: 'owner', memo: { role: 'hr' } } as const;
const doc = '{"id":"1","name":"Ada","pay":5,"home":{"city":"Rome"},"memo":"m","createdAt":"x"}';

test('nothing is parsed where nothing is hidden, and the very text is served', () => {
  const whole = viewsOf({});
  for (const principal of [anonymous, ada, hr]) {
    assert.deepEqual(seenBy(whole(principal), 'no JSON', null), { doc: 'no JSON', mark: '' });
  }
  assert.equal(seenBy(viewsOf({ hidden })(root), 'no JSON', null).doc, 'no JSON');
});

test('leaves out what is hidden and keeps everything else as it stands', () => {
  const views = viewsOf({ hidden });
  assert.equal(seenBy(views(anonymous), doc, 'ada').doc, '{"id":"1","name":"Ada","createdAt":"x"}');
  assert.equal(
    seenBy(views(ada), doc, 'ada').doc,
    '{"id":"1","name":"Ada","pay":5,"home":{"city":"Rome"},"createdAt":"x"}',
  );
  assert.equal(seenBy(views(ada), doc, 'bob').doc, '{"id":"1","name":"Ada","createdAt":"x"}');
  assert.equal(
    seenBy(views(hr), doc, null).doc,
    '{"id":"1","name":"Ada","pay":5,"memo":"m","createdAt":"x"}',
  );
});

test('what is not there is not left out: the text and its tag stay those of the whole', () => {
  const plain = '{"id":"1","name":"Ada"}';
  assert.deepEqual(seenBy(viewsOf({ hidden })(anonymous), plain, null), { doc: plain, mark: '' });
});

test('marks tell apart which members are left out, not who sees the rest', () => {
  const views = viewsOf({ hidden });
  const marks = [anonymous, ada, hr].map((principal) => seenBy(views(principal), doc, 'ada').mark);
  assert.equal(new Set(marks).size, 3);
  assert.equal(seenBy(views(ada), doc, 'bob').mark, seenBy(views(anonymous), doc, 'bob').mark);
});

test('only fields that are seen in every resource may be named, with what is within them', () => {
  const views = viewsOf({ hidden });
  const names = (principal: typeof ada) => [...views(principal).fields.keys()];
  assert.deepEqual(names(ada), ['id', 'name', 'createdAt', 'updatedAt']);
  assert.deepEqual(names(hr), ['id', 'name', 'pay', 'memo', 'createdAt', 'updatedAt']);
  assert.ok(names(root).includes('home.city'));
});

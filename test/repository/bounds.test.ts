import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findBoundsProblems, findContainers } from '../../scripts/checks/bounds.ts';
import { memoryBounds } from '../../src/memory/bounds.ts';
import { ruleAudiencesMax } from '../../src/model/access-function.ts';
import { makeTree } from './fixture-tree.ts';

const namesIn = (text: string) => findContainers('src/a.ts', text).map(({ name }) => name);

test('says the bound of a folder that may not read the list', () => {
  assert.equal(memoryBounds.ruleConditions.entries, ruleAudiencesMax);
});

test('finds fields of classes, also those that a constructor or a method sets', () => {
  assert.deepEqual(namesIn('class A { #kept = new Map(); readonly seen = new Set<string>(); plain = 1; }'), [
    '#kept',
    'seen',
  ]);
  assert.deepEqual(namesIn('class A { #x; constructor() { this.#x = new Map(); } }'), ['#x']);
});

test('finds what a later function uses, and not what a callback uses at once', () => {
  assert.deepEqual(
    namesIn('function make() { const kept = new Map(); return { get: (key) => kept.get(key) }; }'),
    ['kept'],
  );
  assert.deepEqual(
    namesIn('function make() { const kept = new Map(); function get() { return kept; } return get; }'),
    ['kept'],
  );
  assert.deepEqual(
    namesIn('function run(list) { const seen = new Set(); return list.filter((each) => seen.has(each)); }'),
    [],
  );
  assert.deepEqual(namesIn('function run() { const local = new Map(); return local.size; }'), []);
});

test('finds members that grow and every cache, and not a table with its entries', () => {
  assert.deepEqual(namesIn('function make() { return { open: new Set(), table: new Map([[1, 2]]) }; }'), [
    'open',
  ]);
  assert.deepEqual(namesIn('function makeCache() { return new OctetCache({}); }'), ['makeCache']);
});

test('reports containers that are not listed, and entries without a container', (t) => {
  const root = makeTree(t, { 'src/a.ts': 'class A {\n  #kept = new Map();\n}\n' });
  assert.deepEqual(findBoundsProblems(root, [{ file: 'src/a.ts', name: '#kept' }]), []);
  assert.deepEqual(
    findBoundsProblems(root, []).map(({ file, line }) => [file, line]),
    [['src/a.ts', 2]],
  );
  const gone = findBoundsProblems(root, [
    { file: 'src/a.ts', name: '#kept' },
    { file: 'src/b.ts', name: 'gone' },
  ]);
  assert.deepEqual(
    gone.map(({ file }) => file),
    ['src/b.ts'],
  );
});

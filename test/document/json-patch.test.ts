import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Json } from '../../src/http/syntax/json.ts';
import { jsonPatch, patchLimitsDefault } from '../../src/resources/document/json-patch.ts';

const apply = (target: Json, operations: unknown, limits = patchLimitsDefault) =>
  jsonPatch(target, operations, limits);

describe('the document of a JSON Patch', () => {
  const malformed: readonly (readonly [unknown, string, string])[] = [
    [{}, '', 'must be an array of operations'],
    [null, '', 'must be an array of operations'],
    [[5], '/0', 'must be an object'],
    [[null], '/0', 'must be an object'],
    [[{ path: '/a', value: 1 }], '/0/op', 'must be "add", "remove", "replace", "move", "copy" or "test"'],
    [
      [{ op: 'ADD', path: '/a', value: 1 }],
      '/0/op',
      'must be "add", "remove", "replace", "move", "copy" or "test"',
    ],
    [
      [{ op: 'toString', path: '/a' }],
      '/0/op',
      'must be "add", "remove", "replace", "move", "copy" or "test"',
    ],
    [[{ op: 'remove' }], '/0/path', 'must be a JSON Pointer'],
    [[{ op: 'remove', path: 'a' }], '/0/path', 'must be a JSON Pointer'],
    [[{ op: 'remove', path: '/a~2' }], '/0/path', 'must be a JSON Pointer'],
    [[{ op: 'remove', path: 5 }], '/0/path', 'must be a JSON Pointer'],
    [[{ op: 'add', path: '/a' }], '/0/value', 'is required'],
    [[{ op: 'replace', path: '/a' }], '/0/value', 'is required'],
    [[{ op: 'test', path: '/a' }], '/0/value', 'is required'],
    [[{ op: 'move', path: '/a' }], '/0/from', 'must be a JSON Pointer'],
    [[{ op: 'copy', path: '/a', from: 'b' }], '/0/from', 'must be a JSON Pointer'],
    [
      [{ op: 'test', path: '', value: {} }, { op: 'x' }],
      '/1/op',
      'must be "add", "remove", "replace", "move", "copy" or "test"',
    ],
  ];
  for (const [document, pointer, message] of malformed) {
    test(`refuses ${JSON.stringify(document)} as patch_malformed at "${pointer}"`, () => {
      const result = apply({ a: 1 }, document);
      assert.deepEqual(result, {
        ok: false,
        problem: { code: 'patch_malformed', errors: [{ pointer, message }] },
      });
    });
  }

  test('names at most twenty malformed operations', () => {
    const result = apply({}, new Array(50).fill({ op: 'x' }));
    assert.equal(result.ok ? 0 : result.problem.errors?.length, 20);
  });

  test('refuses one operation more than operationsMax and takes exactly as many', () => {
    const limits = { ...patchLimitsDefault, operationsMax: 3 };
    const operation = { op: 'test', path: '', value: {} };
    assert.equal(apply({}, new Array(3).fill(operation), limits).ok, true);
    const over = apply({}, new Array(4).fill(operation), limits);
    assert.equal(over.ok ? '' : over.problem.code, 'patch_malformed');
  });

  test('ignores members that RFC 6902 does not define', () => {
    const result = apply({ a: 1 }, [{ op: 'remove', path: '/a', value: 5, from: 7, xyz: true }]);
    assert.deepEqual(result, { ok: true, value: {} });
  });

  test('takes an empty array as a patch that changes nothing', () => {
    assert.deepEqual(apply({ a: 1 }, []), { ok: true, value: { a: 1 } });
  });
});

describe('operations that can be applied', () => {
  const applied: readonly (readonly [string, Json, unknown, Json])[] = [
    ['appends with "-"', { a: [1] }, [{ op: 'add', path: '/a/-', value: 2 }], { a: [1, 2] }],
    [
      'adds at the index after the last item',
      { a: [1] },
      [{ op: 'add', path: '/a/1', value: 2 }],
      { a: [1, 2] },
    ],
    ['inserts before an item', { a: [1, 2] }, [{ op: 'add', path: '/a/0', value: 0 }], { a: [0, 1, 2] }],
    ['replaces an existing member by add', { a: 1 }, [{ op: 'add', path: '/a', value: 2 }], { a: 2 }],
    ['replaces the whole document', { a: 1 }, [{ op: 'replace', path: '', value: [1] }], [1]],
    ['adds the whole document', { a: 1 }, [{ op: 'add', path: '', value: null }], null],
    ['tests 1 equal to 1.0', { a: 1 }, [{ op: 'test', path: '/a', value: JSON.parse('1.0') }], { a: 1 }],
    [
      'tests objects whatever the order of members',
      { a: { b: 1, c: 2 } },
      [{ op: 'test', path: '/a', value: { c: 2, b: 1 } }],
      { a: { b: 1, c: 2 } },
    ],
    ['tests null', { a: null }, [{ op: 'test', path: '/a', value: null }], { a: null }],
    ['unescapes ~1 before ~0', { '~1': 1, '/': 2 }, [{ op: 'remove', path: '/~01' }], { '/': 2 }],
    [
      'reaches the member with the empty name',
      { '': 1 },
      [{ op: 'replace', path: '/', value: 2 }],
      { '': 2 },
    ],
    [
      'copies without sharing',
      { a: { b: 1 } },
      [
        { op: 'copy', from: '/a', path: '/c' },
        { op: 'add', path: '/c/b', value: 2 },
      ],
      { a: { b: 1 }, c: { b: 2 } },
    ],
    ['adds one value twice without sharing', {}, addTwice(), { a: [1], b: [] }],
    [
      'copies the whole document into a member',
      { a: 1 },
      [{ op: 'copy', from: '', path: '/b' }],
      { a: 1, b: { a: 1 } },
    ],
    ['moves a value onto its own place', { a: 1 }, [{ op: 'move', from: '/a', path: '/a' }], { a: 1 }],
    [
      'moves an item within its array',
      { a: [1, 2, 3] },
      [{ op: 'move', from: '/a/0', path: '/a/2' }],
      { a: [2, 3, 1] },
    ],
    ['moves a member of a member up', { a: { b: 1 } }, [{ op: 'move', from: '/a/b', path: '/a' }], { a: 1 }],
    [
      'treats a digit as a member name of an object',
      { a: {} },
      [{ op: 'add', path: '/a/01', value: 1 }],
      { a: { '01': 1 } },
    ],
    [
      'takes constructor for an ordinary name',
      {},
      [{ op: 'add', path: '/constructor', value: 1 }],
      { constructor: 1 } as never,
    ],
  ];
  for (const [what, target, operations, expected] of applied) {
    test(what, () => assert.deepEqual(apply(target, operations), { ok: true, value: expected }));
  }

  function addTwice(): unknown {
    const value: number[] = [];
    return [
      { op: 'add', path: '/a', value },
      { op: 'add', path: '/b', value },
      { op: 'add', path: '/a/-', value: 1 },
    ];
  }
});

describe('operations that cannot be applied', () => {
  const refused: readonly (readonly [string, Json, object])[] = [
    ['removing what is not there', { a: 1 }, { op: 'remove', path: '/b' }],
    ['removing an inherited member', {}, { op: 'remove', path: '/toString' }],
    ['removing the whole document', { a: 1 }, { op: 'remove', path: '' }],
    ['removing "-"', { a: [1] }, { op: 'remove', path: '/a/-' }],
    ['replacing what is not there', { a: 1 }, { op: 'replace', path: '/b', value: 1 }],
    ['replacing "-"', { a: [1] }, { op: 'replace', path: '/a/-', value: 1 }],
    ['replacing beyond the end', { a: [1] }, { op: 'replace', path: '/a/1', value: 1 }],
    ['adding beyond the end', { a: [1] }, { op: 'add', path: '/a/2', value: 1 }],
    ['an index with a leading zero', { a: [1, 2] }, { op: 'replace', path: '/a/01', value: 1 }],
    ['an index with a sign', { a: [1, 2] }, { op: 'add', path: '/a/+1', value: 1 }],
    ['a negative index', { a: [1, 2] }, { op: 'add', path: '/a/-1', value: 1 }],
    ['an index in exponent form', { a: [1, 2] }, { op: 'replace', path: '/a/1e0', value: 1 }],
    ['an index with a space', { a: [1, 2] }, { op: 'replace', path: '/a/ 1', value: 1 }],
    ['an empty index', { a: [1, 2] }, { op: 'add', path: '/a/', value: 1 }],
    ['the length of an array', { a: [1, 2] }, { op: 'test', path: '/a/length', value: 2 }],
    ['a parent that is not there', {}, { op: 'add', path: '/a/b', value: 1 }],
    ['a parent that is a string', { a: 'x' }, { op: 'add', path: '/a/0', value: 1 }],
    ['a parent that is null', { a: null }, { op: 'add', path: '/a/0', value: 1 }],
    ['copying from nowhere', {}, { op: 'copy', from: '/a', path: '/b' }],
    ['moving from nowhere', {}, { op: 'move', from: '/a', path: '/b' }],
    ['moving into its own child', { a: { b: {} } }, { op: 'move', from: '/a', path: '/a/b/c' }],
    ['moving the whole document', { a: 1 }, { op: 'move', from: '', path: '/b' }],
    ['a test of another value', { a: 1 }, { op: 'test', path: '/a', value: '1' }],
    ['a test of what is not there', {}, { op: 'test', path: '/a', value: null }],
    ['a test of an array of another order', { a: [1, 2] }, { op: 'test', path: '/a', value: [2, 1] }],
    ['adding __proto__', {}, { op: 'add', path: '/__proto__', value: { x: 1 } }],
    ['walking through __proto__', {}, { op: 'add', path: '/__proto__/polluted', value: 1 }],
    ['walking through constructor', {}, { op: 'add', path: '/constructor/prototype/polluted', value: 1 }],
  ];
  for (const [what, target, operation] of refused) {
    test(`refuses ${what} and names the operation`, () => {
      const before = structuredClone(target);
      const first = { op: 'test', path: '', value: target };
      const result = apply(target, [first, operation]);
      assert.equal(result.ok ? '' : result.problem.code, 'patch_not_applicable');
      assert.deepEqual(result.ok ? {} : result.problem.context, { operation: 1 });
      assert.equal(result.ok ? '' : result.problem.errors?.[0]?.pointer, '/1');
      assert.deepEqual(target, before);
      assert.equal(({} as Record<string, unknown>).polluted, undefined);
    });
  }

  test('leaves the target as it was when a later operation fails', () => {
    const target = { a: { b: [1, 2] } };
    const result = apply(target, [
      { op: 'add', path: '/a/b/-', value: 3 },
      { op: 'remove', path: '/a/b/0' },
      { op: 'test', path: '/a/b/0', value: 'no' },
    ]);
    assert.equal(result.ok, false);
    assert.deepEqual(target, { a: { b: [1, 2] } });
  });

  test('says in the message which operation failed and why', () => {
    const result = apply({}, [{ op: 'remove', path: '/tags/0' }]);
    const expected = 'operation 0 (remove "/tags/0") cannot be applied: there is no value at this path';
    assert.equal(result.ok ? '' : result.problem.message, expected);
  });

  test('repeats at most 160 characters of a path', () => {
    const result = apply({}, [{ op: 'copy', from: `/${'x'.repeat(1e6)}`, path: `/${'y'.repeat(1e6)}` }]);
    assert.ok(!result.ok && (result.problem.message?.length ?? 0) < 500);
  });
});

describe('the bounds of a JSON Patch', () => {
  test('stops a chain of copies that doubles the document each time', () => {
    const operations = Array.from({ length: 40 }, () => ({ op: 'copy', from: '/a', path: '/a/-' }));
    const limits = { ...patchLimitsDefault, depthMax: 1000 };
    const result = apply({ a: ['x'.repeat(1000)] }, operations, limits);
    assert.match(result.ok ? '' : (result.problem.message ?? ''), /copies or moves more than/);
  });

  test('stops a nesting that grows by copies one level beyond depthMax', () => {
    const limits = { ...patchLimitsDefault, depthMax: 4 };
    const nest = (times: number) =>
      Array.from({ length: times }, () => ({ op: 'copy', from: '', path: '/a' }));
    assert.equal(apply({}, nest(3), limits).ok, true);
    const over = apply({}, nest(4), limits);
    assert.match(over.ok ? '' : (over.problem.message ?? ''), /would nest deeper than/);
  });

  test('stops a nesting that grows by moves', () => {
    const limits = { ...patchLimitsDefault, depthMax: 4 };
    const target = { a: { b: {} }, c: {} };
    const result = apply(target, [{ op: 'move', from: '/a', path: '/c/a' }], limits);
    assert.equal(result.ok, true);
    const over = apply({ ...target, c: { d: {} } }, [{ op: 'move', from: '/a', path: '/c/d/a' }], limits);
    assert.equal(over.ok, false);
  });

  test('answers a thousand insertions at the front of a long array within the bound', () => {
    const target = { a: new Array(400_000).fill(0) };
    const operations = Array.from({ length: 1000 }, () => ({ op: 'add', path: '/a/0', value: 1 }));
    assert.equal(apply(target, operations).ok, false);
  });
});

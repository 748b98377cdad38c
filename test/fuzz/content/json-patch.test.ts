import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { Json } from '../../../src/http/syntax/json.ts';
import { formatJsonPointer } from '../../../src/http/syntax/json-pointer.ts';
import { jsonPatch, patchLimitsDefault } from '../../../src/resources/document/json-patch.ts';
import { bounds, memberName, tree } from './bounds.ts';

type Operation = { op: string; path: string; from?: string; value?: Json };

const pointer = fc.array(memberName, { maxLength: 3 }).map(formatJsonPointer);
const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({ op: fc.constantFrom('add', 'replace', 'test'), path: pointer, value: tree }),
  fc.record({ op: fc.constant('remove'), path: pointer }),
  fc.record({ op: fc.constantFrom('move', 'copy'), path: pointer, from: pointer }),
);

/** One operation to be aimed at a place of the document as it then is. A wild one keeps its own pointers. */
const step = fc.record({
  wild: fc.oneof({ weight: 12, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: operation }),
  op: fc.constantFrom('add', 'add', 'remove', 'replace', 'test', 'copy', 'move'),
  at: fc.nat(),
  from: fc.nat(),
  name: fc.option(memberName),
  value: tree,
});
/** Mostly something with members, since a bare scalar has one place only. */
const document = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.dictionary(memberName, tree, { minKeys: 1, maxKeys: 4, noNullPrototype: true }),
  },
  { weight: 1, arbitrary: tree },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Random pointers lead somewhere in 3 of 100 patches; aimed ones let most be applied, and the rest fail late. */
function aim(target: Json, steps: readonly Step[]): readonly Operation[] {
  const operations: Operation[] = [];
  let current = target;
  for (const { wild, op, at, from, name, value } of steps) {
    const all = placesOf(current);
    const places = all.length > 1 && at % 8 !== 0 ? all.slice(1) : all;
    const [path = '', standing = null] = places[at % places.length] ?? [];
    const [source = ''] = places[from % places.length] ?? [];
    const end = Array.isArray(standing) ? '-' : (name ?? 'new');
    const target = name === null ? path : `${path}${formatJsonPointer([end])}`;
    const aimed: Operation =
      op === 'test'
        ? { op, path, value: name === null ? value : standing }
        : op === 'copy' || op === 'move'
          ? { op, path: target, from: source }
          : op === 'add'
            ? { op, path: target, value }
            : { op, path, ...(op === 'replace' ? { value } : {}) };
    const next = wild ?? aimed;
    operations.push(next);
    current = expected(current, [next])?.value ?? current;
  }
  return operations;
}

function placesOf(value: Json, at = ''): (readonly [pointer: string, value: Json])[] {
  const below = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return [
    [at, value],
    ...below.flatMap(([name, member]) => placesOf(member, at + formatJsonPointer([name]))),
  ];
}

/**
 * A patch in the plainest way: each step rebuilds the document from the root by recursion, and throws where
 * RFC 6902 says that there is an error.
 */
function model(document: Json, operations: readonly Operation[]): Json {
  return operations.reduce((value: Json, { op, path, from = '', value: operand = null }) => {
    const to = split(path);
    switch (op) {
      case 'add':
        return edit(value, to, () => operand, true);
      case 'remove':
        return remove(value, to);
      case 'replace':
        read(value, to);
        return edit(value, to, () => operand, false);
      case 'test':
        if (!isDeepStrictEqual(read(value, to), operand)) throw new Error('test');
        return value;
      case 'copy': {
        const copied = read(value, split(from));
        return edit(value, to, () => copied, true);
      }
      default: {
        const moved = read(value, split(from));
        if (from === path) return value;
        if (`${path}/`.startsWith(`${from}/`)) throw new Error('into itself');
        return edit(remove(value, split(from)), to, () => moved, true);
      }
    }
  }, document);
}

const split = (path: string) =>
  path
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));

function indexIn(array: readonly Json[], token: string, mayEnd: boolean): number {
  if (mayEnd && token === '-') return array.length;
  if (!/^(0|[1-9]\d*)$/.test(token)) throw new Error('no index');
  if (Number(token) >= array.length + (mayEnd ? 1 : 0)) throw new Error('beyond the end');
  return Number(token);
}

function read(value: Json, path: readonly string[]): Json {
  const [token, ...rest] = path;
  if (token === undefined) return value;
  if (Array.isArray(value)) return read(value[indexIn(value, token, false)] ?? null, rest);
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, token)) throw new Error('missing');
  return read(value[token] ?? null, rest);
}

function edit(value: Json, path: readonly string[], make: () => Json, inserts: boolean): Json {
  const [token, ...rest] = path;
  if (token === undefined) return make();
  const isLast = rest.length === 0;
  if (Array.isArray(value)) {
    const index = indexIn(value, token, isLast && inserts);
    const item = isLast ? make() : edit(value[index] ?? null, rest, make, inserts);
    return value.toSpliced(index, isLast && inserts ? 0 : 1, item);
  }
  if (typeof value !== 'object' || value === null) throw new Error('no container');
  if (isLast) return Object.fromEntries([...Object.entries(value), [token, make()]]);
  const member = edit(read(value, [token]), rest, make, inserts);
  return Object.fromEntries([...Object.entries(value), [token, member]]);
}

function remove(value: Json, path: readonly string[]): Json {
  const [token, ...rest] = path;
  if (token === undefined) throw new Error('root');
  if (rest.length > 0) return edit(value, [token], () => remove(read(value, [token]), rest), false);
  if (Array.isArray(value)) return value.toSpliced(indexIn(value, token, false), 1);
  read(value, path);
  return Object.fromEntries(Object.entries(value as object).filter(([name]) => name !== token));
}

function expected(document: Json, operations: readonly Operation[]): { value: Json } | undefined {
  try {
    return { value: model(document, operations) };
  } catch {
    // The model throws for every operation that cannot be applied.
    return undefined;
  }
}

test('a JSON Patch gives what a plain model of RFC 6902 gives, or is refused where the model is', () => {
  let applied = 0;
  let refused = 0;
  fc.assert(
    fc.property(document, fc.array(step, { minLength: 1, maxLength: 5 }), (target, steps) => {
      const operations = aim(target, steps);
      const before = JSON.stringify([target, operations]);
      const outcome = expected(target, operations);
      const result = jsonPatch(target, operations, patchLimitsDefault);
      assert.equal(JSON.stringify([target, operations]), before, 'neither is changed');
      if (outcome === undefined) {
        refused += 1;
        assert.equal(result.ok ? '' : result.problem.code, 'patch_not_applicable');
      } else {
        applied += 1;
        assert.deepEqual(result, { ok: true, value: outcome.value });
      }
    }),
    { ...bounds, numRuns: Math.max(2000, bounds.numRuns ?? 0) },
  );
  const share = applied / (applied + refused);
  assert.ok(
    share > 0.1 && share < 0.9,
    `${applied} applied, ${refused} refused: the generator is off its aim`,
  );
});

test('any value in place of a patch is applied or refused, and nothing is thrown', () => {
  const wild = fc.array(
    fc.dictionary(
      fc.constantFrom('op', 'path', 'from', 'value', 'x'),
      fc.oneof(
        tree,
        pointer,
        operation.map(({ op }) => op),
      ),
    ),
    { maxLength: 3 },
  );
  fc.assert(
    fc.property(tree, fc.oneof(tree, wild), (document, patch) => {
      const result = jsonPatch(document, patch, patchLimitsDefault);
      if (!result.ok) assert.match(result.problem.code, /^patch_(malformed|not_applicable)$/);
    }),
    bounds,
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatTimestamp } from '../../src/model/timestamp.ts';
import { buildRepresentation } from '../../src/resources/document/representation.ts';
import { codePoint } from '../harness/code-point.ts';
import { products } from './sample-collections.ts';

const at = Date.UTC(2026, 0, 2, 3, 4, 5, 6);
const parts = {
  id: 'p1',
  fields: { name: 'x', tags: ['a'] },
  createdAt: at,
  updatedAt: at + 1,
  deletedAt: null,
};

test('writes id, the fields in their order, createdAt and updatedAt', () => {
  assert.equal(
    buildRepresentation(products, parts),
    '{"id":"p1","name":"x","tags":["a"],"createdAt":"2026-01-02T03:04:05.006Z","updatedAt":"2026-01-02T03:04:05.007Z"}',
  );
});

test('ends with deletedAt where the resource is softly deleted', () => {
  assert.match(
    buildRepresentation(products, { ...parts, deletedAt: at }),
    /,"deletedAt":"2026-01-02T03:04:05\.006Z"\}$/,
  );
});

test('writes a resource without fields', () => {
  const time = '2026-01-02T03:04:05.006Z';
  assert.deepEqual(JSON.parse(buildRepresentation(products, { ...parts, fields: {}, updatedAt: at })), {
    id: 'p1',
    createdAt: time,
    updatedAt: time,
  });
});

test('is the JSON text of its parts for any id and any fields', () => {
  fc.assert(
    fc.property(fc.string({ unit: codePoint }), fc.dictionary(fc.string(), fc.jsonValue()), (id, given) => {
      const fields = JSON.parse(JSON.stringify(given));
      for (const name of ['id', 'createdAt', 'updatedAt', '__proto__']) delete fields[name];
      const time = new Date(at).toISOString();
      const expected = JSON.parse(JSON.stringify({ id, ...fields, createdAt: time, updatedAt: time }));
      assert.deepEqual(
        JSON.parse(buildRepresentation(products, { ...parts, id, fields, updatedAt: at })),
        expected,
      );
    }),
  );
});

test('writes every time as Date does', () => {
  const edges = [
    0, 1, 999, 1000, 951_782_400_000, 951_868_799_999, 4_107_542_400_000, 253_402_300_799_999,
    253_402_300_800_000, -1,
  ];
  for (const ms of edges) assert.equal(formatTimestamp(ms), new Date(ms).toISOString());
  fc.assert(
    fc.property(fc.integer({ min: -1e12, max: 253_402_300_900_000 }), (ms) => {
      assert.equal(formatTimestamp(ms), new Date(ms).toISOString());
    }),
    { numRuns: 2000 },
  );
  assert.throws(() => formatTimestamp(Number.NaN), RangeError);
});

/** The sort key of a row from its document: the same for a long one, which is only looked into, as for a short one, which is parsed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Field } from '../../src/model/field.ts';
import { documentKey } from '../../src/store/page-of-rows.ts';

const fields: readonly Field[] = [
  { name: 'id', path: [], type: 'string', column: 'id' },
  { name: 'createdAt', path: [], type: 'timestamp', column: 'createdAt' },
  { name: 'text', path: ['text'], type: 'string' },
  { name: 'number', path: ['number'], type: 'number' },
  { name: 'flag', path: ['flag'], type: 'boolean' },
  { name: 'in.text', path: ['in', 'text'], type: 'string' },
];
const sort = fields.map((field) => ({ field, direction: 'asc' as const }));
const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null), fc.array(fc.string()));
const filling = 'x'.repeat(8 * 1024);

test('is the same however long the document is', () => {
  fc.assert(
    fc.property(
      fc.record(
        {
          id: fc.string(),
          createdAt: fc.constant('2026-11-23T06:00:00.000Z'),
          text: value,
          number: value,
          flag: value,
          in: fc.oneof(value, fc.record({ text: value })),
        },
        { requiredKeys: ['id', 'createdAt'] },
      ),
      fc.boolean(),
      (resource, isFirst) => {
        const long = isFirst ? { filling, ...resource } : { ...resource, filling };
        assert.deepEqual(
          documentKey(sort, JSON.stringify(long)),
          documentKey(sort, JSON.stringify(resource)),
        );
      },
    ),
  );
});

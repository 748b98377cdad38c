import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ScalarType } from '../../src/model/field.ts';
import { readCount, readText, readValue } from '../../src/resources/query/conditions.ts';

describe('text', () => {
  const cases: readonly (readonly [type: ScalarType, text: string, value: unknown])[] = [
    ['string', '', ''],
    ['string', 'true', 'true'],
    ['string', '\ud800', undefined],
    ['number', '0', 0],
    ['number', '-0', 0],
    ['number', '-1.5e-3', -0.0015],
    ['number', '1.', undefined],
    ['number', '.5', undefined],
    ['number', ' 1', undefined],
    ['number', '1 ', undefined],
    ['number', 'Infinity', undefined],
    ['integer', '1.0', 1],
    ['integer', '1e3', 1000],
    ['integer', '1e-1', undefined],
    ['boolean', 'true', true],
    ['boolean', 'TRUE', undefined],
    ['boolean', '1', undefined],
    ['timestamp', '2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['timestamp', '2026-01-31T23:59:59Z', '2026-01-31T23:59:59.000Z'],
    ['timestamp', '2026-01-31T23:59:59.5Z', '2026-01-31T23:59:59.500Z'],
    ['timestamp', '2026-01-31T23:59:59.123Z', '2026-01-31T23:59:59.123Z'],
    ['timestamp', '2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['timestamp', '2026-02-29', undefined],
    ['timestamp', '2026-13-01', undefined],
    ['timestamp', '2026-01-31T24:00:00Z', undefined],
    ['timestamp', '2026-01-31T23:59:60Z', undefined],
    ['timestamp', '2026-01-31T23:59:59', undefined],
    ['timestamp', '2026-01-31T23:59:59+00:00', '2026-01-31T23:59:59.000Z'],
    ['timestamp', '2026-02-01t01:59:59.1234+02:00', '2026-01-31T23:59:59.1234Z'],
    ['timestamp', '2026-01-31T23:59:59.1234567890Z', undefined],
    ['timestamp', '2026-01-31T23:59:59Z[Europe/Berlin]', undefined],
    ['timestamp', '0001-01-01T00:00:00+00:01', undefined],
    ['timestamp', '2026-01-31 23:59:59Z', undefined],
    ['timestamp', '0001-01-01', '0001-01-01T00:00:00.000Z'],
    ['timestamp', '1769817600', undefined],
    ['timestamp', 'now', 'now'],
    ['timestamp', 'today-P1Y2M3W4DT5H6M7S[Europe/Berlin]', 'today-P1Y2M3W4DT5H6M7S[Europe/Berlin]'],
    ['timestamp', 'thisMonth+PT999999S', 'thisMonth+PT999999S'],
    ['timestamp', 'now-PT1000000S', undefined],
    ['timestamp', 'now[Europe/Nowhere]', undefined],
    ['timestamp', 'now-P', undefined],
    ['timestamp', 'now-PT', undefined],
    ['timestamp', 'now-P1DT', undefined],
    ['timestamp', 'now-7d', undefined],
    ['timestamp', 'Today', undefined],
    ['string', 'today[Europe/Nowhere]', 'today[Europe/Nowhere]'],
  ];
  for (const [type, text, value] of cases) {
    test(`"${text}" is ${value === undefined ? 'no' : 'a'} ${type}`, () => {
      assert.strictEqual(readText({ type }, text), value);
    });
  }
});

describe('a JSON value', () => {
  const cases: readonly (readonly [type: ScalarType, value: unknown, read: unknown])[] = [
    ['string', 'a', 'a'],
    ['string', 1, undefined],
    ['number', 1.5, 1.5],
    ['number', '1.5', undefined],
    ['number', Number.POSITIVE_INFINITY, undefined],
    ['integer', 2, 2],
    ['integer', 2.5, undefined],
    ['boolean', false, false],
    ['boolean', 0, undefined],
    ['timestamp', '2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['timestamp', 1769817600, undefined],
    ['string', null, undefined],
    ['string', ['a'], undefined],
  ];
  for (const [type, value, read] of cases) {
    test(`${JSON.stringify(value)} is ${read === undefined ? 'no' : 'a'} ${type}`, () => {
      assert.strictEqual(readValue({ type }, value), read);
    });
  }
});

test('a count is digits and nothing else', () => {
  assert.deepEqual(['0', '20', '007', '999999999999999'].map(readCount), [0, 20, 7, 999_999_999_999_999]);
  for (const text of ['', '-1', '+1', '1.0', '1e3', ' 1', '٣', '1000000000000000']) {
    assert.equal(readCount(text), undefined, text);
  }
});

/** The kept spelling of instants, and their order, against nanoseconds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compareText } from '../../src/model/matches.ts';
import { instantKey, instantOfKey, keptInstant } from '../../src/model/timestamp.ts';

const two = (value: number): string => String(value).padStart(2, '0');
const parts = fc.record({
  seconds: fc.integer({
    min: Date.parse('0001-01-02T00:00:00Z') / 1000,
    max: Date.parse('9999-12-30T23:59:59Z') / 1000,
  }),
  digits: fc.option(
    fc.oneof(fc.stringMatching(/^[0-9]{1,9}$/), fc.constantFrom('0', '5', '50', '500', '500000000')),
  ),
  offset: fc.option(fc.integer({ min: -(23 * 60 + 59), max: 23 * 60 + 59 })),
  isLower: fc.boolean(),
});

/** @returns a spelling of the instant `seconds` and the digits after it, in the offset, and its nanoseconds since 1970 */
function spell({ seconds, digits, offset, isLower }: typeof parts extends fc.Arbitrary<infer P> ? P : never) {
  const local = new Date((seconds + (offset ?? 0) * 60) * 1000).toISOString().slice(0, 19);
  const minutes = Math.abs(offset ?? 0);
  const zone =
    offset === null ? 'Z' : `${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
  const text = `${local}${digits === null ? '' : `.${digits}`}${zone}`;
  const nanoseconds = BigInt(seconds) * 1_000_000_000n + BigInt((digits ?? '').padEnd(9, '0'));
  return { text: isLower ? text.toLowerCase() : text, nanoseconds };
}

test('keeps the instant and the digits that were sent, at least three, in UTC', () => {
  fc.assert(
    fc.property(parts, (part) => {
      const { text, nanoseconds } = spell(part);
      const kept = keptInstant(text) ?? '';
      const [, second = '', digits = ''] = /^(.{19})\.(\d{3,9})Z$/.exec(kept) ?? [];
      assert.equal(
        BigInt(Date.parse(`${second}Z`)) * 1_000_000n + BigInt(digits.padEnd(9, '0')),
        nanoseconds,
        text,
      );
      assert.equal(digits.length, Math.max(3, part.digits?.length ?? 0));
      assert.equal(keptInstant(kept), kept);
      assert.equal(instantKey(instantKey(kept)), instantKey(kept));
      assert.equal(instantKey(instantOfKey(instantKey(kept))), instantKey(kept));
    }),
    { numRuns: 2000 },
  );
});

test('orders keys by code point as the instants', () => {
  const near = fc.tuple(parts, parts, fc.boolean()).map(([one, other, isNear]) => {
    return [spell(one), spell(isNear ? { ...other, seconds: one.seconds } : other)] as const;
  });
  fc.assert(
    fc.property(near, ([one, other]) => {
      const order = compareText(
        instantKey(keptInstant(one.text) ?? ''),
        instantKey(keptInstant(other.text) ?? ''),
      );
      const expected = one.nanoseconds < other.nanoseconds ? -1 : Number(one.nanoseconds > other.nanoseconds);
      assert.equal(Math.sign(order), expected, `${one.text} ${other.text}`);
    }),
    { numRuns: 2000 },
  );
});

const refused = [
  ...[
    '2026-01-31',
    '2026-01-31T12:00:00',
    '2026-01-31 12:00:00Z',
    '2026-01-31T12:00Z',
    '20260131T120000Z',
    '',
  ],
  ...['2026-02-29T12:00:00Z', '2026-13-01T12:00:00Z', '2026-01-00T12:00:00Z', '1900-02-29T12:00:00Z'],
  ...['2026-01-31T24:00:00Z', '2026-01-31T12:60:00Z', '2026-12-31T23:59:60Z', '2026-01-31T12:00:00,5Z'],
  ...['2026-01-31T12:00:00.Z', '2026-01-31T12:00:00.0000000000Z', '2026-01-31T12:00:00+24:00'],
  ...['2026-01-31T12:00:00+0200', '2026-01-31T12:00:00Z[Europe/Berlin]', '+12026-01-31T12:00:00Z'],
  ...['0000-12-31T23:59:59Z', '0001-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01'],
];
for (const text of refused) {
  test(`"${text}" is no instant`, () => {
    assert.equal(keptInstant(text), undefined);
  });
}

test('takes the first and the last instant, and a leap day', () => {
  assert.equal(keptInstant('0000-12-31T23:00:00-01:00'), '0001-01-01T00:00:00.000Z');
  assert.equal(keptInstant('9999-12-31T23:59:59.999999999z'), '9999-12-31T23:59:59.999999999Z');
  assert.equal(keptInstant('2000-02-29t23:30:00.5-00:00'), '2000-02-29T23:30:00.500Z');
});

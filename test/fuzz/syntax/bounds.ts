/**
 * How long the property tests of this folder run: a fixed number of cases by default, or COMITY_FUZZ_SECONDS for
 * each property when that is set.
 */
import fc from 'fast-check';
import { codePoint } from '../../harness/code-point.ts';
import { roundsOf } from '../../harness/rounds.ts';

const casesDefault = roundsOf(150, 500);
const secondsAsked = Number(process.env.COMITY_FUZZ_SECONDS ?? '');

/** Settings for `fc.assert`. */
export const bounds: fc.Parameters<unknown> =
  secondsAsked > 0
    ? { numRuns: Number.POSITIVE_INFINITY, interruptAfterTimeLimit: secondsAsked * 1000 }
    : { numRuns: casesDefault };

/** Texts that look like field values: mostly the grammar's own punctuation, some anything. */
export const fieldText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'"\\,;=*/ \t:@?#%[].<>~W-0129aAbqQfF\x00\x7f\x80\xffé') }),
  fc.string({ unit: codePoint }),
  fc
    .array(
      fc.constantFrom(
        '"',
        'a',
        ',',
        ';',
        '=',
        'q=0.5',
        'W/',
        '*/*',
        'text/html',
        '<',
        '>',
        ' ',
        'rel',
        '%2e',
        '\\',
        'é',
        '::',
      ),
    )
    .map((parts) => parts.join('')),
);

/** A non-empty token in lower case. */
export const token: fc.Arbitrary<string> = fc.string({
  unit: fc.constantFrom(..."!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"),
  minLength: 1,
});

/** What a quoted string may hold. */
export const quotable: fc.Arbitrary<string> = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
});

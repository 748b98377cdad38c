/**
 * How long the property tests of this folder run: a fixed number of cases by default, or COMITY_FUZZ_SECONDS for
 * each property when that is set.
 */
import fc from 'fast-check';
import { roundsOf } from '../../harness/rounds.ts';

const casesDefault = roundsOf(100, 400);
const secondsAsked = Number(process.env.COMITY_FUZZ_SECONDS ?? '');

/** Settings for `fc.assert`. */
export const bounds: fc.Parameters<unknown> =
  secondsAsked > 0
    ? { numRuns: Number.POSITIVE_INFINITY, interruptAfterTimeLimit: secondsAsked * 1000 }
    : { numRuns: casesDefault };

/** Member names: a few that meet often, those that prototypes hold, and anything. */
export const memberName: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('a', 'b', 'c', '0', '1', '-', '') },
  { weight: 1, arbitrary: fc.constantFrom('constructor', 'toString', 'length', 'a/b', '~', '~1', '01', 'é') },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme' }).filter((name) => name !== '__proto__') },
);

type Tree = null | boolean | number | string | Tree[] | { [name: string]: Tree };

/** Small JSON values over those names, so that paths often lead somewhere. */
export const tree: fc.Arbitrary<Tree> = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.oneof(fc.constantFrom<Tree>(null, true, false, 0, 1, 1.5, -1, '', 'x'), fc.string({ maxLength: 3 })),
    fc.array(tie('tree'), { maxLength: 4 }),
    // No entry is assigned, since assigning __proto__ would be lost; fast-check makes ordinary objects.
    fc.dictionary(memberName, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).tree;

/** `like` patterns against a plain reading of their definition, and the chance to end a long search. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createLikeMatcher, holds } from '../../src/model/matches.ts';

/** The definition, word by word, and as slow as that. */
function isLike(text: readonly string[], pattern: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return text.length === 0;
  if (first === '%') return isLike(text, rest) || (text.length > 0 && isLike(text.slice(1), pattern));
  const literal = first === '\\' && rest.length > 0;
  const wanted = literal ? rest[0] : first;
  if (text.length === 0 || (wanted !== text[0] && (literal || wanted !== '_'))) return false;
  return isLike(text.slice(1), literal ? rest.slice(1) : rest);
}

test('matches any text as the definition of the pattern says', () => {
  const character = fc.constantFrom('a', 'b', '%', '_', '\\', 'é', '😀', '😁');
  const characters = fc.array(character, { maxLength: 9 });
  fc.assert(
    fc.property(characters, characters, (text, pattern) => {
      assert.equal(createLikeMatcher(pattern.join(''))(text.join('')), isLike(text, pattern));
    }),
    { numRuns: 3000 },
  );
});

test('finds a match that spans two windows of a long text', () => {
  for (const before of [16_380, 16_384, 16_385, 32_768, 50_000]) {
    const text = `${'x'.repeat(before)}needle😀${'y'.repeat(40_000)}`;
    assert.equal(createLikeMatcher('%needle_y%')(text), true);
    assert.equal(createLikeMatcher('%needle__x%')(text), false);
    assert.equal(
      holds(text, 'needle', () => undefined),
      true,
    );
    assert.equal(
      holds(text, 'needles', () => undefined),
      false,
    );
  }
});

test('lets its caller end a search whose cost is the product of both lengths', () => {
  const text = 'a'.repeat(1_000_000);
  for (const pattern of [`%${'a'.repeat(900)}b%`, `%_${'a'.repeat(900)}b%`, `%${'_a'.repeat(300)}b%`]) {
    let checks = 0;
    const matcher = createLikeMatcher(pattern, () => {
      checks += 1;
      if (checks === 3) throw new Error('over');
    });
    assert.throws(() => matcher(text), /over/);
  }
});

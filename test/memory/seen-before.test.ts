import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { SeenBefore } from '../../src/memory/octet-cache.ts';

suite('texts that were given before', () => {
  test('are told from new ones', () => {
    const seen = new SeenBefore(64);
    assert.deepEqual(
      ['a', 'b', 'a', 'b', ''].map((text) => seen.note(text)),
      [false, false, true, true, false],
    );
  });

  test('are forgotten after many others, and never more are held than there are places', () => {
    const seen = new SeenBefore(64);
    const texts = Array.from({ length: 6400 }, (_, at) => `text ${at}`);
    for (const text of texts) seen.note(text);
    const known = texts.filter((text) => seen.note(text));
    assert.ok(known.length <= 64, `${known.length} of ${texts.length} are known`);
    assert.equal(seen.note(texts.at(-1) ?? ''), true);
  });

  test('are told by their length and their beginning if they are long', () => {
    const seen = new SeenBefore(64);
    const long = 'x'.repeat(100_000);
    assert.equal(seen.note(long), false);
    assert.equal(seen.note(`${long}y`), false);
    assert.equal(seen.note(long), true);
  });
});

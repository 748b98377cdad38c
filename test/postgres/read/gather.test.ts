/** Gathering what one turn of the event loop asks for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGather } from '../../../src/store/postgres/read/point-reads.ts';

/** Answers `a` for `A`, and nothing for keys in lower case. */
function capitals(keysMax = 100) {
  const asked: (readonly string[])[] = [];
  const gather = createGather(async (keys: readonly string[]) => {
    asked.push([...keys]);
    if (keys.includes('FAIL')) throw new Error('refused');
    return new Map(
      keys.filter((key) => key !== key.toLowerCase()).map((key) => [key, key.toLowerCase()] as const),
    );
  }, keysMax);
  return { asked, gather };
}

test('asks once for everything that one turn asked for, each key once', async () => {
  const { asked, gather } = capitals();
  const answers = await Promise.all([gather('A'), gather('B'), gather('A'), gather('c')]);
  assert.deepEqual(answers, ['a', 'b', 'a', undefined]);
  assert.deepEqual(asked, [['A', 'B', 'c']]);
});

test('sends nothing before the turn ends, and asks anew for a key that is on its way', async () => {
  const { asked, gather } = capitals();
  const first = gather('A');
  await Promise.resolve();
  assert.deepEqual(asked, []);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(asked, [['A']]);
  const second = gather('A');
  assert.notEqual(second, first);
  assert.equal(await second, 'a');
  assert.deepEqual(asked, [['A'], ['A']]);
});

test('asks for at most so many keys at once, and fails those alone that were asked for together', async () => {
  const { asked, gather } = capitals(2);
  const results = await Promise.allSettled(['A', 'B', 'FAIL', 'D', 'E'].map(gather));
  assert.deepEqual(asked, [['A', 'B'], ['FAIL', 'D'], ['E']]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'rejected', 'fulfilled'],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentlyUsed } from '../../src/auth/recently-used.ts';

test('never holds more than its bound, whatever comes in whatever order', () => {
  for (const max of [2, 3, 16, 101]) {
    const held = new RecentlyUsed<{ n: number }>(max);
    for (let n = 0; n < 5000; n += 1) {
      held.set(String((n * 7919) % 997), { n });
      held.get(String((n * 31) % 997));
      assert.ok(held.size <= max, `${held.size} of ${max}`);
    }
  }
});

test('keeps what is used while others pass by, and gives the newest value of a name', () => {
  const held = new RecentlyUsed<{ n: number }>(16);
  held.set('hot', { n: 0 });
  for (let n = 0; n < 1000; n += 1) {
    held.set(`cold ${n}`, { n });
    assert.deepEqual(held.get('hot'), { n: 0 });
  }
  assert.equal(held.get('cold 0'), undefined);
  assert.deepEqual(held.get('cold 999'), { n: 999 });
  held.set('hot', { n: 1 });
  for (let n = 0; n < 8; n += 1) held.set(`more ${n}`, { n });
  assert.deepEqual(held.get('hot'), { n: 1 }, 'an older value of the name does not come back');
});

test('forgets a value, and not another that has taken its name', () => {
  const held = new RecentlyUsed<{ n: number }>(16);
  const [one, other] = [{ n: 1 }, { n: 2 }];
  held.set('name', one);
  for (let n = 0; n < 8; n += 1) held.set(`more ${n}`, { n });
  held.delete('name', other);
  assert.equal(held.get('name'), one);
  held.set('name', other);
  held.delete('name', one);
  assert.equal(held.get('name'), other);
  held.delete('name', other);
  assert.equal(held.get('name'), undefined);
});

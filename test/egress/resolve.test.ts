import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DialFailure } from '../../src/egress/dial-failure.ts';
import { createResolver } from '../../src/egress/resolve.ts';

const { signal } = new AbortController();

/** A resolver whose lookups end when the test says so, on a clock that the test sets. */
function resolverByHand() {
  const underWay = new Map<string, PromiseWithResolvers<readonly string[]>>();
  const clock = { nowMs: 0 };
  const lookUp = (hostname: string) => {
    const lookup = Promise.withResolvers<readonly string[]>();
    underWay.set(hostname, lookup);
    return lookup.promise;
  };
  const resolve = createResolver(lookUp, () => clock.nowMs);
  const end = (hostname: string): void => {
    underWay.get(hostname)?.resolve(['192.0.2.1']);
    underWay.delete(hostname);
  };
  return { resolve, end, clock, asked: () => [...underWay.keys()] };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Makes the names slow: each takes two seconds once. */
async function makeSlow(by: ReturnType<typeof resolverByHand>, names: readonly string[]): Promise<void> {
  const found = names.map((name) => by.resolve(name, signal));
  by.clock.nowMs += 2000;
  for (const name of names) by.end(name);
  await Promise.all(found);
}

test('looks up host names whose last lookup was slow one at a time, and others beside them', async () => {
  const by = resolverByHand();
  await makeSlow(by, ['a.slow', 'b.slow', 'c.slow']);
  const found = ['a.slow', 'b.slow', 'c.slow', 'd.quick', 'e.quick'].map((name) => by.resolve(name, signal));
  await turn();
  assert.deepEqual(by.asked().sort(), ['a.slow', 'd.quick', 'e.quick']);
  by.end('a.slow');
  await turn();
  assert.deepEqual(by.asked().sort(), ['b.slow', 'd.quick', 'e.quick']);
  for (const name of ['d.quick', 'e.quick', 'b.slow']) by.end(name);
  await turn();
  by.end('c.slow');
  assert.equal((await Promise.all(found)).length, 5);
});

test('does not look up a slow name that nobody waits for any more', async () => {
  const by = resolverByHand();
  await makeSlow(by, ['a.slow', 'b.slow', 'c.slow']);
  const first = by.resolve('a.slow', signal);
  const gone = new AbortController();
  const second = by.resolve('b.slow', gone.signal);
  const third = by.resolve('c.slow', signal);
  const reason = new DialFailure('dns', 'late');
  gone.abort(reason);
  await assert.rejects(second, reason);
  by.end('a.slow');
  await first;
  await turn();
  assert.deepEqual(by.asked(), ['c.slow']);
  by.end('c.slow');
  await third;
});

test('takes a name for quick again after a quick lookup', async () => {
  const by = resolverByHand();
  await makeSlow(by, ['a.slow', 'b.slow']);
  const quick = by.resolve('a.slow', signal);
  await turn();
  by.end('a.slow');
  await quick;
  const found = [by.resolve('b.slow', signal), by.resolve('a.slow', signal)];
  await turn();
  assert.deepEqual(by.asked().sort(), ['a.slow', 'b.slow']);
  by.end('a.slow');
  by.end('b.slow');
  await Promise.all(found);
});

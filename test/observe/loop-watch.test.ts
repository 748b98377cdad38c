/** What held the event loop, and how much of that was the program's own work. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchLoop } from '../../src/observe/event-loop.ts';
import type { Observation } from '../../src/observe/observation.ts';

const request = { id: 'r1', method: 'GET' };

type Held = Extract<Observation, { kind: 'loop-held' }>;

function watch() {
  const held: Held[] = [];
  let nowMs = 0;
  let workedMs = 0;
  const loop = watchLoop({
    heldMs: 50,
    observe: (fact: Observation) => {
      if (fact.kind === 'loop-held') held.push(fact);
    },
    onDelay: () => undefined,
    monotonic: () => nowMs,
    workedMs: () => workedMs,
  });
  return {
    loop,
    held,
    /** The thread runs for `busyMs`, and others for the rest. */
    pass(ms: number, busyMs: number): void {
      nowMs += ms;
      workedMs += busyMs;
    },
  };
}

for (const { ms, busyMs, told } of [
  { ms: 49, busyMs: 49, told: false },
  { ms: 50, busyMs: 50, told: true },
  { ms: 300, busyMs: 150, told: true },
  { ms: 300, busyMs: 149, told: false },
]) {
  test(`${told ? 'names' : 'does not name'} a request that took ${ms} ms, of which ${busyMs} ms were its own`, () => {
    const { loop, held, pass } = watch();
    const begun = loop.begin();
    pass(ms, busyMs);
    loop.end(begun, request, '/notes');
    loop.close();
    const expected = { kind: 'loop-held', ...request, route: '/notes', heldMs: ms, busyMs };
    assert.deepEqual(held, told ? [expected] : []);
  });
}

test('never tells of more work than the stretch was long', () => {
  const { loop, held, pass } = watch();
  pass(15, 15);
  const begun = loop.begin();
  pass(60, 58);
  loop.end(begun, request, undefined);
  loop.close();
  assert.deepEqual(
    held.map(({ route, heldMs, busyMs }) => [route, heldMs, busyMs]),
    [['none', 60, 60]],
  );
});

test('tells of work that was for no request, by the sample after it', async () => {
  const { loop, held, pass } = watch();
  pass(20 + 80, 70);
  // Until the timer of the watch has fired, whenever that is.
  while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));
  loop.close();
  const [{ id, route, heldMs, busyMs } = assert.fail()] = held;
  assert.deepEqual([id, route, heldMs, busyMs], [undefined, undefined, 80, 70]);
});

/** When the next batch of a group commit leaves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BatchTurns } from '../../src/store/group-commit.ts';

/** A queue whose batches leave; `turns` counts turns of the event loop. */
function queue() {
  const state = { waiting: 0, left: [] as number[] };
  const turns = new BatchTurns(
    () => state.left.push(state.waiting),
    () => state.waiting,
  );
  return { state, turns };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('starts the first batch at the end of the turn, once for all units of the turn', async () => {
  const { state, turns } = queue();
  for (let unit = 0; unit < 3; unit += 1) {
    state.waiting += 1;
    turns.schedule();
  }
  assert.deepEqual(state.left, []);
  await turn();
  assert.deepEqual(state.left, [3]);
});

test('starts the next batch at once if half as many units wait as the last one had', () => {
  const { state, turns } = queue();
  state.waiting = 4;
  turns.follow(8);
  assert.deepEqual(state.left, [4]);
});

test('waits for the units that the next turns bring', async () => {
  const { state, turns } = queue();
  state.waiting = 1;
  turns.follow(8);
  await turn();
  assert.deepEqual(state.left, []);
  state.waiting = 7;
  turns.schedule();
  await turn();
  assert.deepEqual(state.left, [7]);
  await turn();
  assert.deepEqual(state.left, [7]);
});

test('waits four turns at most, for however few units', async () => {
  const { state, turns } = queue();
  state.waiting = 1;
  turns.follow(8);
  for (let passed = 0; passed < 3; passed += 1) await turn();
  assert.deepEqual(state.left, []);
  await turn();
  assert.deepEqual(state.left, [1]);
});

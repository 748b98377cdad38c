/** Crashes lose no message and double no write (crash-rounds.ts says what is held). A round or two here; `npm run soak` takes more, on both stores. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { roundsOf } from '../../harness/rounds.ts';
import { crashRounds } from './crash-rounds.ts';

const rounds = roundsOf(1, 2);

test('handles every message that was answered across kills, and writes what follows from it once', async (context) => {
  const figures = await crashRounds({ rounds });
  context.diagnostic(JSON.stringify(figures));
  assert.equal(figures.kills, rounds);
  assert.ok(figures.acknowledged > rounds && figures.leftToDo > 0, JSON.stringify(figures));
});

/** Crashes lose no webhook (crash-rounds.ts says what is held). A round or two here; `npm run soak` takes more, on both stores. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { roundsOf } from '../../harness/rounds.ts';
import { crashRounds } from './crash-rounds.ts';

const rounds = roundsOf(1, 2);

test('delivers every committed event across kills, twice only what was on its way', async (context) => {
  const figures = await crashRounds({ rounds, killsAgainOfTen: 0 });
  context.diagnostic(JSON.stringify(figures));
  assert.equal(figures.lost, 0);
  assert.ok(figures.events >= figures.acknowledged && figures.acknowledged > rounds, JSON.stringify(figures));
});

/** Crashes lose no event and no run, and double no write (function-crash-rounds.ts says what is held), on both stores. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { countingConfig, functionCrashRounds } from './function-crash-rounds.ts';

const rounds = roundsOf(1, 3);

describe('subscribers and jobs that add to one sum are exact across kills', () => {
  test('with an embedded store', async (context) => {
    const figures = await functionCrashRounds({ rounds });
    context.diagnostic(JSON.stringify(figures));
    assert.ok(figures.acknowledged > rounds && figures.runs > 0, JSON.stringify(figures));
  });

  test('on PostgreSQL', async (context) => {
    const database = await databaseOfProgram(countingConfig);
    try {
      const figures = await functionCrashRounds({ rounds, env: { COMITY_DATABASE_URL: database.url } });
      context.diagnostic(JSON.stringify(figures));
      assert.ok(figures.acknowledged > rounds && figures.runs > 0, JSON.stringify(figures));
    } finally {
      await database.dispose();
    }
  });
});

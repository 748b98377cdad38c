/** Crashes lose no event and no run, and double no write (function-rounds.ts says what is held), on each store. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { engineNames } from '../../harness/engine-names.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { countingConfig, functionCrashRounds } from './function-rounds.ts';

const rounds = roundsOf(1, 2);

describe('subscribers and jobs that add to one sum are exact across kills', () => {
  for (const engine of engineNames) {
    test(`on ${engine}`, async (context) => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(countingConfig);
      try {
        const env = database === undefined ? {} : { COMITY_DATABASE_URL: database.url };
        const figures = await functionCrashRounds({ rounds, env });
        context.diagnostic(JSON.stringify(figures));
        assert.ok(figures.acknowledged > rounds && figures.runs > 0, JSON.stringify(figures));
      } finally {
        await database?.dispose();
      }
    });
  }
});

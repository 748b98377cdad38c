/** Crashes of the receiver, twenty on each store (test/wire/received/crash-rounds.ts says what is held). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { emptyDatabase } from '../harness/postgres-database.ts';
import { crashRounds } from '../wire/received/crash-rounds.ts';

const rounds = Number(process.env.COMITY_SOAK_ROUNDS ?? 20);

test('handles every message that was answered, and writes what follows once, on the embedded store', async (context) => {
  const figures = await crashRounds({ rounds });
  context.diagnostic(JSON.stringify(figures));
  assert.ok(figures.acknowledged > rounds, JSON.stringify(figures));
});

test('handles every message that was answered, and writes what follows once, on PostgreSQL', async (context) => {
  const server = await emptyDatabase();
  context.after(() => server.dispose());
  const figures = await crashRounds({ rounds, env: { COMITY_DATABASE_URL: server.url } });
  context.diagnostic(JSON.stringify(figures));
  assert.ok(figures.acknowledged > rounds, JSON.stringify(figures));
});

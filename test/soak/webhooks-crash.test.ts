/** Twenty rounds, or COMITY_SOAK_ROUNDS, of kills on each store: see test/wire/webhooks/crash-rounds.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { emptyDatabase } from '../harness/postgres-database.ts';
import { type CrashFigures, crashRounds } from '../wire/webhooks/crash-rounds.ts';

const rounds = Number(process.env.COMITY_SOAK_ROUNDS ?? 20);

function judge(figures: CrashFigures): void {
  assert.equal(figures.lost, 0);
  assert.ok(figures.kills >= rounds && figures.events >= figures.acknowledged, JSON.stringify(figures));
}

test('loses no webhook when it is killed, on the embedded store', async (context) => {
  const figures = await crashRounds({ rounds, killsAgainOfTen: 3 });
  context.diagnostic(JSON.stringify(figures));
  judge(figures);
});

test('loses no webhook when it is killed, on PostgreSQL', async (context) => {
  const server = await emptyDatabase();
  try {
    const env = { COMITY_DATABASE_URL: server.url };
    const figures = await crashRounds({ rounds, killsAgainOfTen: 3, env });
    context.diagnostic(JSON.stringify(figures));
    judge(figures);
  } finally {
    await server.dispose();
  }
});

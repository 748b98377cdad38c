/** The suite against the smallest server that keeps its clauses: all hold, each in one of two configurations at least. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { apiClauses } from '../../conduct/all-clauses.ts';
import { judgeApi } from '../../conduct/judge.ts';
import { cleanTarget } from './clean-target.ts';

describe('the suite of conduct, at a server of three hundred lines', () => {
  it('finds that every clause holds', async (context) => {
    const held = new Set<string>();
    for (const credentials of ['Authorization', 'X-API-Key'] as const) {
      const target = await cleanTarget(context, { credentials });
      const { clauses, left } = await judgeApi([target], apiClauses, {
        mayWrite: true,
        progress: () => undefined,
      });
      const broken = clauses.filter(({ verdict }) => verdict === 'fails' || verdict === 'warning');
      assert.deepEqual(
        broken.map(({ id, why }) => `${id}: ${why}`),
        [],
      );
      assert.deepEqual(left, []);
      for (const { id, verdict } of clauses) if (verdict === 'holds') held.add(id);
    }
    assert.deepEqual(
      apiClauses.filter(({ id }) => !held.has(id)).map(({ id }) => id),
      [],
    );
  });
});

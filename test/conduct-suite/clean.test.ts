/** The suite against the smallest server that keeps its clauses: all hold, each in one of two configurations at least. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { apiClauses } from '../../conduct/all-clauses.ts';
import { judgeApi } from '../../conduct/judge.ts';
import { cleanTarget } from './clean-target.ts';
import { brokenOf } from './verdicts.ts';

describe('the suite of conduct, at the smallest server that keeps its clauses', () => {
  it('finds that every clause holds', async (context) => {
    const held = new Set<string>();
    for (const credentials of ['Authorization', 'X-API-Key'] as const) {
      const target = await cleanTarget(context, { credentials });
      const report = await judgeApi([target], apiClauses, { mayWrite: true, progress: () => undefined });
      assert.deepEqual(brokenOf(report), []);
      assert.deepEqual(report.left, []);
      for (const { id, verdict } of report.clauses) if (verdict === 'holds') held.add(id);
    }
    assert.deepEqual(
      apiClauses.filter(({ id }) => !held.has(id)).map(({ id }) => id),
      [],
    );
  });
});

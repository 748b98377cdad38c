/** Each clause of the suite catches the server that breaks it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { apiClauses } from '../../../conduct/all-clauses.ts';
import { judgeApi } from '../../../conduct/judge.ts';
import { cleanTarget } from '../../conduct-suite/clean-target.ts';
import { assertCaught } from '../../conduct-suite/verdicts.ts';
import { frameMutants, http2Mutants, standBetweenFrames } from './http2-mutants.ts';
import { mutants } from './mutants.ts';
import { standBetween } from './standing-between.ts';

describe('a clause of the suite of conduct', () => {
  for (const clause of apiClauses) {
    it(`${clause.id} catches the server that breaks it`, async (context) => {
      const mutant = mutants[clause.id];
      const overHttp2 = http2Mutants[clause.id];
      const frames = frameMutants[clause.id];
      assert.ok((mutant ?? overHttp2 ?? frames) !== undefined, 'no mutant breaks it');
      const target = await cleanTarget(context, {
        credentials: clause.id === 'authorization-varies' ? 'X-API-Key' : 'Authorization',
        ...(mutant !== undefined && { through: (port) => standBetween(port, mutant, context) }),
        ...(overHttp2 !== undefined && { overHttp2 }),
        ...(frames !== undefined && { through: (port) => standBetweenFrames(port, frames, context) }),
      });
      const { clauses } = await judgeApi([target], [clause], { mayWrite: true, progress: () => undefined });
      const [judged] = clauses;
      assertCaught(judged);
      assert.ok(judged.exchanges.length > 0, 'it has no evidence');
    });
  }
});

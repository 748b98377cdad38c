/** Verdicts of the suite of conduct, as tests assert them. */
import assert from 'node:assert/strict';
import type { Judged, Report } from '../../conduct/judge.ts';

/** The clauses that fail or get a warning, each with what was found. */
export function brokenOf({ clauses }: Pick<Report, 'clauses'>): readonly string[] {
  return clauses.filter(isBroken).map(({ id, why }) => `${id}: ${why}`);
}

export function assertCaught(judged: Judged | undefined): asserts judged is Judged {
  assert.ok(judged !== undefined && isBroken(judged), `${judged?.verdict}: ${judged?.why}`);
}

function isBroken({ verdict }: Judged): boolean {
  return verdict === 'fails' || verdict === 'warning';
}

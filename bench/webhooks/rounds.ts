/**
 * The rounds of a measurement of webhooks. The first ones are thrown away: the program's compiler is at work for some 30,000 deliveries
 * (330 us of processor time for each of the first 10,000, 150 for each of the third).
 */
import type { Run } from '../measured-run.ts';

export type Round = { readonly round: number; readonly isMeasured: boolean };

/** @param settling how many are thrown away; the run's own number where nothing is said */
export function roundsOf({ options }: Run, settling: number = options.settlingRounds): readonly Round[] {
  const before = Math.min(settling, options.settlingRounds);
  return Array.from({ length: before + options.rounds }, (_, round) => ({
    round,
    isMeasured: round >= before,
  }));
}

/**
 * Reads by id at a fixed rate, with and without eight accounts logging in again and again, so that eight passwords are always being
 * hashed or waiting for it. The rate is fixed since a saturated server would show nothing but its own queue.
 */
import { type Account, logIn, register } from './authenticated.ts';
import { type Spread, spreadOf } from './cell.ts';
import type { Subject } from './engine.ts';
import { generateLoad } from './load/generate.ts';
import type { LoadPlan } from './load/plan.ts';
import type { Run } from './measured-run.ts';

const loginsAtOnce = 8;

export type LoginFigures = {
  readonly quietP99Us: Spread;
  readonly busyP99Us: Spread;
  /** Round by round. */
  readonly ratio: Spread;
  readonly loginsPerSecond: Spread;
};

/** Measures both in each round; `plan` is a read plan with its rate. */
export async function measureLogins(run: Run, subject: Subject, plan: LoadPlan): Promise<LoginFigures> {
  const accounts = await register(subject, loginsAtOnce);
  const quiet: number[] = [];
  const busy: number[] = [];
  const rates: number[] = [];
  for (let round = 0; round < run.options.rounds; round += 1) {
    const measureQuiet = async () => quiet.push((await generateLoad(run.pinning, plan)).latency.p99Us);
    if (round % 2 === 0) await measureQuiet();
    const ending = new AbortController();
    const startedMs = performance.now();
    const background = accounts.map((account) => logInUntil(subject, account, ending.signal));
    busy.push((await generateLoad(run.pinning, plan)).latency.p99Us);
    ending.abort();
    const counts = await Promise.all(background);
    const logins = counts.reduce((sum, count) => sum + count, 0);
    rates.push((logins / (performance.now() - startedMs)) * 1000);
    if (round % 2 === 1) await measureQuiet();
  }
  const ratio = spreadOf(busy.map((p99, round) => p99 / (quiet[round] ?? Number.NaN)));
  return {
    quietP99Us: spreadOf(quiet),
    busyP99Us: spreadOf(busy),
    ratio,
    loginsPerSecond: spreadOf(rates),
  };
}

/** Logs in again and again until told to end, and says how often; a wrong answer throws. */
async function logInUntil(subject: Subject, account: Account, ending: AbortSignal): Promise<number> {
  let count = 0;
  while (!ending.aborted) {
    await logIn(subject, account, false);
    count += 1;
  }
  return count;
}

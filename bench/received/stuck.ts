/**
 * How soon messages are acknowledged while handlers are stuck: at a fixed rate, to a sender whose messages wait to be marked, to one whose
 * function never ends, and to one whose function never gives its thread back. Each has a program of its own, whose threads
 * are stuck from the first message on.
 */
import { type Spread, spreadOf } from '../cell.ts';
import { generateLoad } from '../load/generate.ts';
import type { Run } from '../measured-run.ts';
import { roundsOf } from '../webhooks/rounds.ts';
import { type ReceivingProgram, startReceiving } from './program.ts';
import { receivedPlan } from './received-plan.ts';

export const stuckSenders = ['standard', 'waiting', 'looping'] as const;
export type StuckSender = (typeof stuckSenders)[number];

export type Acknowledged = {
  readonly sender: StuckSender;
  readonly p50Ms: Spread;
  readonly p99Ms: Spread;
  /** Answers a second: less than was asked for where the program could not keep up. */
  readonly perSecond: Spread;
};

type Side = {
  readonly sender: StuckSender;
  readonly program: ReceivingProgram;
  readonly p50Ms: number[];
  readonly p99Ms: number[];
  readonly perSecond: number[];
};

export async function measureStuck(
  run: Run,
  ratePerSecond: number,
  senders: readonly StuckSender[],
): Promise<readonly Acknowledged[]> {
  const found: Acknowledged[] = [];
  // One after the other: a thread that loops takes its processor from every program on it.
  for (const sender of senders) found.push(await measureSender(run, ratePerSecond, sender));
  return found;
}

async function measureSender(run: Run, ratePerSecond: number, sender: StuckSender): Promise<Acknowledged> {
  const program = await startReceiving(run.pinning, run.engine.newPlace());
  const side: Side = { sender, program, p50Ms: [], p99Ms: [], perSecond: [] };
  try {
    for (const { isMeasured } of roundsOf(run)) await measureOnce(run, side, ratePerSecond, isMeasured);
  } finally {
    await program.stop();
  }
  const { p50Ms, p99Ms, perSecond } = side;
  return { sender, p50Ms: spreadOf(p50Ms), p99Ms: spreadOf(p99Ms), perSecond: spreadOf(perSecond) };
}

async function measureOnce(
  run: Run,
  { sender, program, p50Ms, p99Ms, perSecond }: Side,
  ratePerSecond: number,
  isMeasured: boolean,
): Promise<void> {
  const plan = receivedPlan(run, program.server, { scheme: 'standard', sendings: 1 }, sender);
  const { latency, requestsPerSecond } = await generateLoad(run.pinning, { ...plan, ratePerSecond });
  if (!isMeasured) return;
  p50Ms.push(latency.p50Us / 1000);
  p99Ms.push(latency.p99Us / 1000);
  perSecond.push(requestsPerSecond);
  const { accepted, processed } = await program.counted(sender);
  if (accepted === 0 || processed > 0)
    throw new Error(`${sender}: ${accepted} accepted, ${processed} processed`);
}

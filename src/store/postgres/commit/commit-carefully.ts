/**
 * Commits a batch in two flights: the first takes the lock and asks what stands, then each unit is judged here, and the
 * second writes those that are accepted. The lock is held for the round trip in between.
 */
import type { Commit } from '../../store.ts';
import { ask, type Batch, commitCalls, giveUp, type Room, transactionMs } from './flight.ts';
import { inspect } from './inspection.ts';
import { judge } from './judge.ts';
import { netWrites } from './net-writes.ts';
import type { Made } from './outcome.ts';
import { begin, firstRevOf } from './transaction.ts';

/** @throws the DatabaseError of a write that failed all the same, NotCommitted, or StoreUnavailable */
export async function commitCarefully(room: Room, { works, endsAt }: Batch): Promise<Made> {
  const { tables, fence, frame } = room;
  await fence.ensure(endsAt);
  const timeoutMs = transactionMs(endsAt);
  const until = performance.now() + timeoutMs;
  const { ledger, questions } = inspect(works, tables);
  const opening = [begin, frame.open(fence.epoch, timeoutMs), frame.draw(0)];
  const replies = await ask(room, [...opening, ...questions], timeoutMs);
  for (const [at, { take }] of questions.entries()) take(replies[opening.length + at]?.rows ?? []);
  const judgement = judge(works, ledger, tables, firstRevOf(replies[opening.length - 1]?.rows));
  const { accepted, refusals, touched } = judgement;
  const units = accepted.length;
  let rev = 0;
  if (units === 0) await giveUp(room.connection);
  else {
    const calls = [frame.resume(), frame.draw(units), ...netWrites(accepted, ledger, tables)];
    const leftMs = Math.max(1, until - performance.now());
    rev = await commitCalls(room, calls, { units, touched, timeoutMs: leftMs, endsAt });
  }
  const lastRev = rev + units - 1;
  const outcomes = refusals.map((refused): { readonly commit: Commit } => {
    if (refused !== undefined) return { commit: refused };
    rev += 1;
    return { commit: { outcome: 'committed', rev: rev - 1 } };
  });
  return { outcomes, touched: new Map(touched.map((number) => [number, lastRev])) };
}

/** Commits a batch in one flight, if all that its units assume holds (bold-flight.ts). */
import { boldChanges } from './bold-flight.ts';
import { type Batch, commitCalls, type Room, transactionMs } from './flight.ts';
import type { Made } from './outcome.ts';
import { begin } from './transaction.ts';

/** @throws the DatabaseError of what did not hold, NotCommitted, or StoreUnavailable */
export async function commitBoldly(room: Room, { works, endsAt }: Batch): Promise<Made> {
  const { frame, fence, tables } = room;
  await fence.ensure(endsAt);
  const timeoutMs = transactionMs(endsAt);
  const units = works.length;
  const { calls, touched } = boldChanges(works, tables);
  const flight = [begin, frame.open(fence.epoch, timeoutMs), frame.draw(units), ...calls];
  const firstRev = await commitCalls(room, flight, { units, touched, timeoutMs, endsAt });
  return {
    outcomes: works.map((_, index) => ({ commit: { outcome: 'committed', rev: firstRev + index } })),
    touched: new Map(touched.map((number) => [number, firstRev + units - 1])),
  };
}

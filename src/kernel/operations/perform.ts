/**
 * Carries out one accepted request: walks it, and ends the operation in the same unit as the change that it made, or
 * in one of its own where it made none.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Request, Response } from '../../http/message.ts';
import { problemBody, problemStatus } from '../../http/problem.ts';
import type { Services } from '../../store/capabilities.ts';
import { keptRow } from '../../store/kept-row.ts';
import { LineUnavailable } from '../../store/lines.ts';
import { type Change, type Row, StoreUnavailable } from '../../store/store.ts';
import type { Companion } from '../resource.ts';
import type { Lease } from './lease.ts';
import { operationsTable, requestOf, type StoredRequest } from './stored-request.ts';

export type OperationDoc = {
  readonly id: string;
  readonly status: 'pending' | 'succeeded' | 'failed';
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly result?: string;
  /** The representation after the change, or the error body; served at `{id}/result` where nothing else has it. */
  readonly outcome?: unknown;
};

export type CarryOut = (
  request: Request,
  stored: Pick<StoredRequest, 'principal'>,
  companions: readonly Companion[],
) => Promise<Response>;

export type Performance = Pick<Services, 'store' | 'clock' | 'observe'> & {
  /** Of operations: `/api/v1/operations`. */
  readonly path: string;
  readonly carryOut: CarryOut;
  readonly stored: StoredRequest;
  /** What stands of the operation, which has not ended. */
  readonly row: Pick<Row, 'doc' | 'owner' | 'createdAt' | 'rev'>;
  readonly lease: Lease;
};

/**
 * Resolves when the operation has ended, or somebody else has it.
 * @throws StoreUnavailable when it could not be ended; the lease is still held then
 */
export async function perform(performance: Performance): Promise<void> {
  const { lease, path, stored } = performance;
  for (;;) {
    let made = false;
    let named = lease.rev;
    const companions: readonly Companion[] = [
      (result) => {
        made = true;
        const outcome: unknown = result.doc === null ? null : JSON.parse(result.doc);
        const location = result.location ?? `${path}/${stored.id}/result`;
        return ending(performance, { status: 'succeeded', result: location, outcome });
      },
      () => {
        named = lease.rev;
        return lease.end();
      },
    ];
    const answer = await walked(performance, companions);
    if (answer === undefined) {
      await pause(againMs, undefined, { ref: false });
      if (lease.lost) return;
      continue;
    }
    if (made && answer.status < 400) return;
    await lease.settled();
    if (lease.lost) return;
    // The lease was renewed while the unit that names the old revision was under way: nothing was done, so it is done again.
    if (made && named !== lease.rev) continue;
    const failed = ending(performance, { status: 'failed', outcome: answer.body });
    await performance.store.commit({ changes: [failed, lease.end()], events: [] });
    return;
  }
}

/** The pause before an operation that found no place in the line of its row tries again. */
const againMs = 1000;

/** The answer; undefined where too many changes wait for the row; 500 where the program has a mistake, with which nobody would get any further another time. */
async function walked(
  { carryOut, stored, observe }: Performance,
  companions: readonly Companion[],
): Promise<{ readonly status: number; readonly body: unknown } | undefined> {
  try {
    const { status, content } = await carryOut(requestOf(stored), stored, companions);
    return { status, body: typeof content === 'string' ? JSON.parse(content) : null };
  } catch (error) {
    if (error instanceof LineUnavailable) return undefined;
    if (error instanceof StoreUnavailable) throw error;
    observe({ kind: 'operation-failed', operation: stored.id, error });
    return { status: problemStatus('internal'), body: JSON.parse(problemBody({ code: 'internal' })) };
  }
}

function ending({ row, stored, clock }: Performance, patch: Partial<OperationDoc>): Change {
  const at = clock();
  const before = JSON.parse(row.doc) as OperationDoc;
  const doc = JSON.stringify({ ...before, ...patch, updatedAt: new Date(at).toISOString() });
  const next = keptRow(doc, row.owner, row.createdAt, at);
  return { table: operationsTable, id: stored.id, expect: { rev: row.rev }, next };
}

/**
 * Performs one accepted request: walks it, and ends the operation in the same unit as the change, or in a unit of its
 * own if there was no change.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Request, Response } from '../../http/message.ts';
import { problemBody, problemStatus } from '../../http/problem.ts';
import { givenUpText } from '../../model/starts-max.ts';
import type { Services } from '../../store/capabilities.ts';
import { LineUnavailable } from '../../store/lines.ts';
import { type Change, keptRow, MemoryUnavailable, type Row, StoreUnavailable } from '../../store/store.ts';
import type { Companion } from '../resource.ts';
import {
  type DeletionState,
  deletionMarksTable,
  type RunningOperation,
  releaseMarks,
  stateOf,
} from './deletion-marks.ts';
import type { Lease } from './lease.ts';
import { operationsTable, requestOf, type StoredRequest } from './stored-request.ts';

export type OperationDoc = {
  readonly id: string;
  readonly status: 'pending' | 'succeeded' | 'failed';
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly result?: string;
  /** The representation after the change, or the error body; served at `{id}/result` if the result has no other URI. */
  readonly outcome?: unknown;
};

export type CarryOut = (
  request: Request,
  stored: Pick<StoredRequest, 'principal'>,
  companions: readonly Companion[],
  operation: RunningOperation,
) => Promise<Response>;

export type Performance = Pick<Services, 'store' | 'clock' | 'observe'> & {
  /** Path of the operations: `/api/v1/operations`. */
  readonly path: string;
  readonly carryOut: CarryOut;
  readonly stored: StoredRequest;
  /** The row of the operation, which has not ended. */
  readonly row: Pick<Row, 'doc' | 'owner' | 'createdAt' | 'rev'>;
  readonly lease: Lease;
};

/**
 * Resolves when the operation has ended or another process has its lease.
 * @throws StoreUnavailable if the operation could not be ended; this process then still holds the lease
 */
export async function perform(performance: Performance): Promise<void> {
  const { lease, path, stored, store } = performance;
  const state = lease.isTakenOver ? stateOf(await store.read(deletionMarksTable, stored.id)) : undefined;
  if (lease.isUsedUp) return giveUp(performance, state);
  const operation: RunningOperation = { id: stored.id, state, progressed: () => lease.progressed() };
  for (;;) {
    let made = false;
    let expectedRev = lease.rev;
    const companions: readonly Companion[] = [
      (result) => {
        made = true;
        const outcome: unknown = result.doc === null ? null : JSON.parse(result.doc);
        const location = result.location ?? `${path}/${stored.id}/result`;
        return ending(performance, { status: 'succeeded', result: location, outcome });
      },
      () => {
        expectedRev = lease.rev;
        return lease.end();
      },
    ];
    const before = operation.state;
    const answer = await walkOnce(performance, companions, operation);
    if (answer === undefined) {
      await pause(retryMs, undefined, { ref: false });
      if (lease.lost) return;
      continue;
    }
    if (made && answer.status < 400) return;
    await lease.settled();
    if (lease.lost) return;
    // A step of a deletion in several units was made: the request is judged anew before the next.
    if (operation.state !== before && operation.state !== 'marking') continue;
    // The lease was renewed while a unit with the old revision was on its way: nothing was committed, so walk again.
    if (made && expectedRev !== lease.rev) continue;
    if (operation.state !== undefined) await releaseMarks(store, stored.id);
    const failed = ending(performance, { status: 'failed', outcome: answer.body });
    await store.commit({ changes: [failed, lease.end()], events: [] });
    return;
  }
}

const partlyDeletedText =
  ': a part of what refers to the resource may be deleted, and the resource and the rest are not; the same request deletes them';

async function giveUp(performance: Performance, state: DeletionState | undefined): Promise<void> {
  const { lease, stored, store, observe } = performance;
  const left = state === 'decided' ? partlyDeletedText : '';
  const message = `${givenUpText('carried out the request')}${left}`;
  observe({ kind: 'operation-failed', operation: stored.id, error: new Error(message) });
  await releaseMarks(store, stored.id);
  const outcome: unknown = JSON.parse(problemBody({ code: 'operation_given_up', message }));
  await store.commit({
    changes: [ending(performance, { status: 'failed', outcome }), lease.end()],
    events: [],
  });
}

/** The pause before the next try of an operation that found the line of its row full, or no memory. */
const retryMs = 1000;

/** Returns the response; undefined if the line of the row is full, or others use the memory up; 500 for a bug, which a retry would repeat. */
async function walkOnce(
  { carryOut, stored, observe }: Performance,
  companions: readonly Companion[],
  operation: RunningOperation,
): Promise<{ readonly status: number; readonly body: unknown } | undefined> {
  try {
    const { status, content } = await carryOut(requestOf(stored), stored, companions, operation);
    return { status, body: typeof content === 'string' ? JSON.parse(content) : null };
  } catch (error) {
    if (error instanceof LineUnavailable || error instanceof MemoryUnavailable) return undefined;
    if (error instanceof StoreUnavailable) throw error;
    observe({ kind: 'operation-failed', operation: stored.id, error });
    const problem = { code: 'internal', context: { requestId: stored.id } } as const;
    return { status: problemStatus('internal'), body: JSON.parse(problemBody(problem)) };
  }
}

function ending({ row, stored, clock }: Performance, patch: Partial<OperationDoc>): Change {
  const at = clock();
  const before = JSON.parse(row.doc) as OperationDoc;
  const doc = JSON.stringify({ ...before, ...patch, updatedAt: new Date(at).toISOString() });
  const next = keptRow(doc, row.owner, row.createdAt, at);
  return { table: operationsTable, id: stored.id, expect: { rev: row.rev }, next };
}

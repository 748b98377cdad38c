/**
 * Asynchronous requests (§4.1, §4.7; RFC 7240 §4.1). `accept` stores the whole request durably before the 202 is sent.
 * The request is then walked again without `respond-async`, and the end of the operation commits in the same unit as
 * the change. So an accepted request takes effect exactly once, whichever processes die and however many share the
 * store: each holds a lease on the requests that it performs (stored-request.ts), and looks for requests that others left
 * (`sweepLeft`).
 *
 * States of an operation: `pending` -> `succeeded` (with `result`, the URI of the outcome) or `failed` (with `outcome`,
 * the error).
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Request, Response } from '../../http/message.ts';
import { problemBody, problemStatus } from '../../http/problem.ts';
import { memoryBounds } from '../../memory/bounds.ts';
import { octetsOfValue } from '../../memory/octet-cache.ts';
import { givenUpText } from '../../model/starts-max.ts';
import type { Services } from '../../store/capabilities.ts';
import { pagesOf } from '../../store/in-batches.ts';
import { LineUnavailable } from '../../store/lines.ts';
import { type Change, keptRow, MemoryUnavailable, type Row, StoreUnavailable } from '../../store/store.ts';
import type { Ask, Companion } from '../resource.ts';
import {
  type DeletionState,
  deletionMarksTable,
  type RunningOperation,
  releaseMarks,
  stateOf,
} from './deletion-marks.ts';
import {
  aheadMs,
  heldRow,
  Lease,
  leaseMs,
  operationRequestsTable,
  operationsTable,
  renewedAtField,
  requestIdField,
  requestOf,
  type StoredRequest,
  storedRequest,
} from './stored-request.ts';

export type Operations = {
  /** Stores the request and starts it; resolves when it is durable. @throws StoreUnavailable, also if too many run */
  accept(ask: Ask, bytes: Uint8Array | undefined): Promise<{ location: string; doc: string }>;
  /** Takes over what other processes left pending, now and at intervals until `drain`. */
  resume(): void;
  /** Resolves when nothing is running. */
  idle(): Promise<void>;
  /** Waits for running requests, then gives the leases of the rest back, for another process or the next start. */
  drain(waitMs: number): Promise<void>;
};

type OperationsRoom = Pick<Services, 'store' | 'clock' | 'newId' | 'observe'> & {
  readonly path: string;
  /** From 0 to 31, called once: spreads the rounds of several processes. */
  readonly random: () => number;
};

/** Between two rounds, ± 50 %: a lease that was given back waits at most 1.5 times as long. */
const roundMs = 5000;

/** An operation that has not ended. */
type Pending = Pick<Row, 'doc' | 'owner' | 'createdAt' | 'rev'>;

type UnderWay = { readonly lease: Lease; readonly run: Promise<void> };

/** @param carryOut walks a request; passed separately, because the walk itself needs the operations */
export function createOperations(room: OperationsRoom, carryOut: CarryOut): Operations {
  return new ProcessOperations(room, carryOut);
}

class ProcessOperations implements Operations {
  readonly #room: OperationsRoom;
  readonly #carryOut: CarryOut;
  /** Identifies this process among all holders of leases, past and present. */
  readonly #holder: string;
  readonly #everyMs: number;
  readonly #underWay = new Map<string, UnderWay>();
  /** Octets of the running requests. */
  #octets = 0;
  #round: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  /** In a store of a single process every lease but its own is left from an earlier process. */
  #leftByThePast: boolean;

  constructor(room: OperationsRoom, carryOut: CarryOut) {
    this.#room = room;
    this.#carryOut = carryOut;
    this.#holder = room.newId();
    this.#everyMs = roundMs * (0.5 + room.random() / 31);
    this.#leftByThePast = !room.store.shared;
  }

  async accept(ask: Ask, bytes: Uint8Array | undefined): Promise<{ location: string; doc: string }> {
    const { store, clock, path } = this.#room;
    const id = `op_${this.#room.newId()}`;
    const at = clock();
    const time = new Date(at).toISOString();
    const doc: OperationDoc = { id, status: 'pending', createdAt: time, updatedAt: time };
    const stored = storedRequest(id, ask, bytes);
    const octets = octetsOfValue(stored);
    if (this.#octets + octets > memoryBounds.operations.octets) {
      throw new StoreUnavailable(
        'the memory for asynchronous requests is used up; retry later, or send the request without Prefer: respond-async',
        { retryAfterSeconds: 1 },
      );
    }
    const owner = ask.principal.kind === 'authenticated' ? ask.principal.id : null;
    const row = keptRow(JSON.stringify(doc), owner, at, at);
    const waiting = heldRow(stored, this.#holder, row, at);
    const absent = { absent: true } as const;
    const changes: Change[] = [
      { table: operationsTable, id, expect: absent, next: row },
      { table: operationRequestsTable, id, expect: absent, next: waiting },
    ];
    this.#octets += octets;
    const commit = await store.commit({ changes, events: [] }).finally(() => {
      this.#octets -= octets;
    });
    if (commit.outcome !== 'committed') throw new Error('a new operation id exists already');
    const { rev } = commit;
    void this.#begin(stored, { ...row, rev }, new Lease(store, stored, this.#holder, { ...waiting, rev }));
    return { location: `${path}/${id}`, doc: row.doc };
  }

  resume(): void {
    this.#beginRound();
    if (!this.#stopped) this.#timer ??= setInterval(() => this.#beginRound(), this.#everyMs).unref();
  }

  async idle(): Promise<void> {
    while (this.#round !== undefined || this.#underWay.size > 0) {
      await Promise.all([this.#round, ...[...this.#underWay.values()].map(({ run }) => run)]);
    }
  }

  async drain(waitMs: number): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await Promise.race([this.idle(), pause(waitMs, undefined, { ref: false })]);
    await Promise.all([...this.#underWay.values()].map(({ lease }) => lease.giveBack()));
  }

  #begin(stored: StoredRequest, row: Pending, lease: Lease): Promise<void> {
    const { observe } = this.#room;
    const octets = octetsOfValue(stored);
    this.#octets += octets;
    const run = perform({ ...this.#room, carryOut: this.#carryOut, stored, row, lease })
      .catch(async (error) => {
        if (!lease.lost) observe({ kind: 'operation-failed', operation: stored.id, error });
        await lease.giveBack();
      })
      .finally(() => {
        this.#underWay.delete(stored.id);
        this.#octets -= octets;
      });
    this.#underWay.set(stored.id, { lease, run });
    return run;
  }

  #beginRound(): void {
    const { store, clock, observe } = this.#room;
    for (const { lease } of this.#underWay.values()) void lease.renew(clock());
    this.#round ??= sweepLeft({
      store,
      holder: this.#holder,
      clock,
      all: this.#leftByThePast,
      isOurs: (id) => this.#underWay.has(id),
      isStopped: () => this.#stopped,
      begin: (stored, row, lease) => this.#begin(stored, row, lease),
    })
      .then(
        () => {
          this.#leftByThePast = false;
        },
        (error) => observe({ kind: 'store-failed', what: 'looking for pending operations', error }),
      )
      .finally(() => {
        this.#round = undefined;
      });
  }
}

/** Bounds of a page: each request may be as long as content may be, so octets end a page as well. */
const pageRowsMax = 10;
const pageBytesMax = 1024 * 1024;

const never = Date.UTC(9999, 11, 31);

type Sweep = Pick<Services, 'store' | 'clock'> & {
  readonly holder: string;
  /** Every lease but ours belongs to a process that has ended. */
  readonly all: boolean;
  readonly isOurs: (id: string) => boolean;
  readonly isStopped: () => boolean;
  readonly begin: (stored: StoredRequest, operation: Row, lease: Lease) => Promise<void>;
};

/**
 * One round. Finds requests whose lease was given back or has expired, and takes them over page by page; the next page
 * waits until this one is done, so that one process does not take over all the requests of a dead one at once. With an
 * index by time, the usual round, which finds nothing, takes one step.
 *
 * @throws StoreUnavailable
 */
async function sweepLeft(sweep: Sweep): Promise<void> {
  const now = sweep.clock();
  const before = { op: 'lte', at: sweep.all ? never : now - leaseMs } as const;
  await sweepLapsed(sweep, before);
  if (!sweep.all) await sweepLapsed(sweep, { op: 'gt', at: now + aheadMs });
}

/** The times of the last renewals of leases that have expired. */
type Lapsed = { readonly op: 'lte' | 'gt'; readonly at: number };

async function sweepLapsed(sweep: Sweep, lapsed: Lapsed): Promise<void> {
  const { store } = sweep;
  const plan = store.plan({
    table: operationRequestsTable,
    filter: { op: lapsed.op, field: renewedAtField, value: new Date(lapsed.at).toISOString() },
    sort: [
      { field: renewedAtField, direction: 'asc' },
      { field: requestIdField, direction: 'asc' },
    ],
    limit: pageRowsMax,
    bytesMax: pageBytesMax,
  });
  for await (const { docs } of pagesOf(plan)) {
    const runs: Promise<void>[] = [];
    for (const doc of docs) {
      if (sweep.isStopped()) break;
      const run = await takeUp(sweep, JSON.parse(doc) as StoredRequest, lapsed);
      if (run !== undefined) runs.push(run.ends);
    }
    await Promise.all(runs);
    if (sweep.isStopped()) return;
  }
}

/** Returns an object, so that awaiting the start does not await the end. */
async function takeUp(
  sweep: Sweep,
  stored: StoredRequest,
  { op, at }: Lapsed,
): Promise<{ readonly ends: Promise<void> } | undefined> {
  const { store } = sweep;
  if (sweep.isOurs(stored.id)) return undefined;
  const row = await store.read(operationRequestsTable, stored.id);
  if (row === undefined || (op === 'lte' ? row.updatedAt > at : row.updatedAt <= at)) return undefined;
  const operation = await store.read(operationsTable, stored.id);
  if (operation === undefined) {
    await releaseMarks(store, stored.id);
    // The operation expired before it ended, and can no longer be read.
    const forgotten = { table: operationRequestsTable, id: row.id, expect: { rev: row.rev }, next: null };
    await store.commit({ changes: [forgotten], events: [] });
    return undefined;
  }
  const lease = await Lease.take(store, sweep.holder, row, sweep.clock());
  return lease === undefined ? undefined : { ends: sweep.begin(stored, operation, lease) };
}

type OperationDoc = {
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

type Performance = Pick<Services, 'store' | 'clock' | 'observe'> & {
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
async function perform(performance: Performance): Promise<void> {
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

/**
 * Runs recoveries (recovery.ts) in the process that sends for their endpoints. It looks for running ones at its start,
 * when one begins in any process, and when lanes come; each continues from its row, so a process that dies leaves
 * nothing undone. If two processes believe that they hold the lane, the revision of the row lets one of them commit
 * each step.
 *
 * Recovered deliveries are due at once; the delivery engine limits how fast they are sent.
 */

import type { CollectionOperation } from '../../../kernel/documentation.ts';
import { byId } from '../../../model/filter.ts';
import {
  type ServedCollection,
  type Serving,
  serveCollection,
} from '../../../resources/collection/serving.ts';
import { rowBatches } from '../../../store/in-batches.ts';
import type { Plan, Row, Store } from '../../../store/store.ts';
import { recoveriesCollection } from '../sending-tables.ts';
import { type Recovery, recoveriesTable } from './recovery.ts';
import { type RecoveryParts, recoverStep } from './recovery-step.ts';

const pageRowsMax = 100;
/** Pause after a failure, mostly of the store. */
const retryMs = 1000;
/** Superseded steps in a row after which there is a pause. */
const lostStepsMax = 16;

export type Recoveries = {
  /** Continues running recoveries and follows new ones. */
  start(): void;
  /** Waits for the steps under way; the next start continues the rest. */
  close(): Promise<void>;
};

export function createRecoveries(parts: RecoveryParts): Recoveries {
  return new Runs(parts);
}

class Runs implements Recoveries {
  readonly #parts: RecoveryParts;
  readonly #plan: Plan;
  /** By recovery. */
  readonly #runs = new Map<string, Promise<void>>();
  #stopFollowing: (() => void)[] = [];
  #closing = false;
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  #paused: NodeJS.Timeout | undefined;

  constructor(parts: RecoveryParts) {
    this.#parts = parts;
    this.#plan = planOf(parts.store);
  }

  start(): void {
    const { store, lanes } = this.#parts;
    const look = (): void => this.#look();
    this.#stopFollowing = [store.onChange(recoveriesTable, look), lanes.onChange(look)];
    look();
  }

  async close(): Promise<void> {
    this.#closing = true;
    for (const stop of this.#stopFollowing) stop();
    clearTimeout(this.#paused);
    await this.#looking;
    await Promise.all(this.#runs.values());
  }

  #look(): void {
    if (this.#closing || this.#paused !== undefined) return;
    if (this.#looking !== undefined) {
      this.#lookAgain = true;
      return;
    }
    this.#lookAgain = false;
    this.#looking = findRunning(this.#plan, (row) => this.#begin(row))
      .catch((error) => this.#failed('finding recoveries', error))
      .finally(() => {
        this.#looking = undefined;
        if (this.#lookAgain) this.#look();
      });
  }

  #begin(row: Row): void {
    const { endpointId } = JSON.parse(row.doc) as Recovery;
    const { lanes } = this.#parts;
    if (this.#closing || this.#runs.has(row.id) || !lanes.owns(endpointId)) return;
    const run = this.#carryOut(row.id, endpointId)
      .catch((error) => this.#failed('recovering', error))
      .finally(() => {
        this.#runs.delete(row.id);
        // The lane may have come back before this run had ended.
        if (lanes.owns(endpointId)) this.#look();
      });
    this.#runs.set(row.id, run);
  }

  async #carryOut(id: string, endpointId: string): Promise<void> {
    let lost = 0;
    while (!this.#closing && this.#parts.lanes.owns(endpointId) && lost < lostStepsMax) {
      const step = await recoverStep(this.#parts, id);
      if (step === 'over') return;
      lost = step === 'lost' ? lost + 1 : 0;
    }
    if (lost === lostStepsMax) this.#pause();
  }

  #failed(what: string, error: unknown): void {
    this.#parts.observe({ kind: 'sending-failed', what, error });
    this.#pause();
  }

  #pause(): void {
    this.#paused ??= setTimeout(() => {
      this.#paused = undefined;
      this.#look();
    }, retryMs).unref();
  }
}

function planOf(store: Store): Plan {
  const field = recoveriesCollection.fields.get('status');
  if (field === undefined) throw new Error('the collection recoveries lacks the field status');
  const filter = { op: 'eq', field, value: 'running' } as const;
  return store.plan({ table: recoveriesTable, filter, sort: byId, limit: pageRowsMax });
}

async function findRunning(plan: Plan, found: (row: Row) => void): Promise<void> {
  for await (const rows of rowBatches(plan, pageRowsMax)) for (const row of rows) found(row);
}

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read', 'remove']);

/**
 * `/recoveries`: the progress of recoveries (§6.6). They begin at their endpoint (endpoints/recover-endpoint.ts), and
 * no client changes them. DELETE stops a running one and removes it.
 */
export function recoveryResources(serving: Serving): ServedCollection {
  return serveCollection(serving, recoveriesCollection, {
    announced: false,
    operations,
    documentation: {
      names: { singular: 'Recovery', plural: 'Recoveries', one: 'a recovery', many: 'recoveries' },
      idPrefix: 'rcv_',
      revise: {
        remove: (standard) => ({
          ...standard,
          description: 'Stops the recovery if it is running, and removes it.',
        }),
      },
    },
  });
}

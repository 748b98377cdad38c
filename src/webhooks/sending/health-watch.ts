/**
 * The health of one endpoint, in memory and in its row (`EndpointHealth`). `#failing` is the run of failures since the
 * last success, if any. `#kept` is the row as last known. Before the first read the row is unknown, and notes are
 * merged with it later: a success ends the run in the row, failures continue it. One writer works at a time and checks
 * again after each step, so notes during a write are not lost. If another writer removed the row, the endpoint was
 * enabled or removed: the run is over.
 */
import type { Services } from '../../store/capabilities.ts';
import {
  type Change,
  type Commit,
  type EventEntry,
  keptRow,
  type Row,
  StoreUnavailable,
} from '../../store/store.ts';
import { operationalEvent } from './event-types/event-types.ts';
import type { KnownEndpoint } from './known-endpoint.ts';
import { type EndpointHealth, endpointHealthTable } from './sending-tables.ts';

/** The effects of a run of failures. */
export type Acts = {
  disable(known: KnownEndpoint, since: number): Promise<void>;
  warned(known: KnownEndpoint, since: number): void;
};

/** Minimum time between two writes that only count. */
const countMs = 60_000;
/** Steps of one writer; the next note continues. */
const stepsMax = 32;

type Kept = {
  readonly rev: number;
  readonly createdAt: number;
  /** When it was written. */
  readonly at: number;
  readonly health: EndpointHealth;
};

export class Watch {
  readonly #store: Services['store'];
  readonly #newId: Services['newId'];
  readonly #times: HealthTimes;
  readonly #known: KnownEndpoint;
  readonly #acts: Acts;
  #failing: EndpointHealth | undefined;
  /** End of the newest failed attempt. */
  #failedAt = 0;
  #kept: Kept | undefined;
  #isRead = false;
  /** True after a success until the row reflects it: the run in the row is over. */
  #hasSucceeded = false;
  #isWriting = false;

  /** @param services with fan-out, so that a warning is delivered */
  constructor({ store, newId }: Services, times: HealthTimes, known: KnownEndpoint, acts: Acts) {
    this.#store = store;
    this.#newId = newId;
    this.#times = times;
    this.#known = known;
    this.#acts = acts;
  }

  /** @returns the write that it began, undefined if none is needed or one is running; rejects with StoreUnavailable */
  succeeded(): Promise<void> | undefined {
    this.#failing = undefined;
    this.#hasSucceeded = true;
    return this.#write();
  }

  /** @param at end of the attempt, in milliseconds since the epoch */
  failed(at: number): Promise<void> | undefined {
    const { failingSince = at, failures = 0, warnedAt = null } = this.#failing ?? {};
    this.#failing = { failingSince, failures: failures + 1, warnedAt };
    this.#failedAt = at;
    return this.#write();
  }

  #write(): Promise<void> | undefined {
    if (this.#isWriting || this.#isDone()) return undefined;
    this.#isWriting = true;
    return this.#steps().finally(() => {
      this.#isWriting = false;
    });
  }

  /** Returns true if the row is up to date. */
  #isDone(): boolean {
    const failing = this.#failing;
    const kept = this.#kept;
    if (!this.#isRead) return false;
    if (failing === undefined) return kept === undefined;
    if (kept === undefined || kept.health.failingSince !== failing.failingSince) return false;
    return this.#failedAt - kept.at < countMs && this.#judge(failing) === 'bear';
  }

  #judge(failing: EndpointHealth): ReturnType<typeof judgeHealth> {
    return judgeHealth(failing, this.#failedAt, this.#times);
  }

  async #steps(): Promise<void> {
    for (let step = 0; step < stepsMax && !this.#isDone(); step += 1) {
      const failing = this.#failing;
      if (!this.#isRead) await this.#read();
      else if (failing === undefined) await this.#end();
      else if (this.#judge(failing) === 'disable') {
        return this.#acts.disable(this.#known, failing.failingSince);
      } else await this.#keep(failing, this.#failedAt);
    }
  }

  async #read(): Promise<void> {
    const kept = keptOf(await this.#store.read(endpointHealthTable, this.#known.endpoint.id));
    this.#kept = kept;
    this.#isRead = true;
    this.#hasSucceeded &&= kept !== undefined;
    const failing = this.#failing;
    if (kept === undefined || failing === undefined || this.#hasSucceeded) return;
    // Failures in this process continue the run of the row.
    const failures = kept.health.failures + failing.failures;
    this.#failing = { ...newer(kept.health, failing), failures };
  }

  /** Removes the row after a success. */
  async #end(): Promise<void> {
    if (this.#kept === undefined) return;
    const expect = { rev: this.#kept.rev };
    const change: Change = { table: endpointHealthTable, id: this.#known.endpoint.id, expect, next: null };
    const commit = await this.#store.commit({ changes: [change], events: [] });
    this.#kept = commit.outcome === 'committed' ? undefined : keptOf(currentOf(commit));
    this.#hasSucceeded &&= this.#kept !== undefined;
  }

  /** Writes the run, with a warning if one is due. */
  async #keep(run: EndpointHealth, at: number): Promise<void> {
    const isWarning = this.#judge(run) === 'warn';
    const health = isWarning ? { ...run, warnedAt: at } : run;
    const commit = await this.#store.commit({
      changes: [this.#keepingChange(health, at)],
      events: isWarning ? [this.#warning(run, at)] : [],
    });
    if (commit.outcome !== 'committed') return this.#overtaken(currentOf(commit));
    this.#kept = { rev: commit.rev, createdAt: this.#kept?.createdAt ?? at, at, health };
    // After a success during the write, `#failing` may be another run, which has had no warning.
    if (this.#failing?.failingSince === run.failingSince) {
      this.#hasSucceeded = false;
      this.#failing = { ...this.#failing, warnedAt: health.warnedAt };
    }
    if (isWarning) this.#acts.warned(this.#known, run.failingSince);
  }

  #warning({ failingSince }: EndpointHealth, at: number): EventEntry {
    const { endpoint, owner } = this.#known;
    return operationalEvent('endpoint.failing', endpoint, owner, at, this.#newId, failingSince);
  }

  #keepingChange(health: EndpointHealth, at: number): Change {
    const kept = this.#kept;
    return {
      table: endpointHealthTable,
      id: this.#known.endpoint.id,
      expect: kept === undefined ? { absent: true } : { rev: kept.rev },
      next: keptRow(JSON.stringify(health), this.#known.owner, kept?.createdAt ?? at, at),
    };
  }

  #overtaken(row: Row | undefined): void {
    const wasKept = this.#kept !== undefined;
    const kept = keptOf(row);
    this.#kept = kept;
    if (kept === undefined) {
      if (wasKept) this.#failing = undefined;
    } else if (this.#failing !== undefined && !this.#hasSucceeded) {
      this.#failing = newer(kept.health, this.#failing);
    }
  }
}

function keptOf(row: Row | undefined): Kept | undefined {
  if (row === undefined) return undefined;
  const { rev, createdAt, updatedAt } = row;
  return { rev, createdAt, at: updatedAt, health: JSON.parse(row.doc) as EndpointHealth };
}

/** Merges the run with a row that another writer wrote, or this one in a unit with an unknown outcome. */
function newer(row: EndpointHealth, run: EndpointHealth): EndpointHealth {
  return {
    failingSince: Math.min(row.failingSince, run.failingSince),
    failures: Math.max(row.failures, run.failures),
    warnedAt: row.warnedAt ?? run.warnedAt,
  };
}

function currentOf(commit: Commit): Row | undefined {
  if (commit.outcome === 'superseded') return commit.current;
  throw new StoreUnavailable(`the health of an endpoint ended as ${commit.outcome}`, {
    retryAfterSeconds: 1,
  });
}

/*
 * The transitions of an endpoint's health (§6.8: disable an endpoint that fails continuously for a long time, and
 * notify its owner). Pure.
 *
 *   healthy   no failure since the last success
 *   failing   since the first failure after it; no effect yet
 *   warned    failing for `warnMs`: the owner was notified, once
 *   disabled  failing for `disableMs`, with at least three scheduled attempts, and the warning is old enough
 *
 * A success makes it healthy from every state but the last, which the owner ends.
 *
 * Time alone does not disable an endpoint. One that failed once six days ago and once now counts as failing for six
 * days, but its owner knows nothing. So an endpoint is disabled only after a warning and after time to react: another
 * `warnMs`, at most a day. If `warnMs` exceeds `disableMs`, the warning comes when the endpoint would have been
 * disabled, and the disabling that much later.
 */

export type HealthTimes = {
  readonly warnMs: number;
  readonly disableMs: number;
};

/** Scheduled attempts that must have failed before an endpoint is disabled. */
export const failuresMin = 3;
const graceMsMax = 86_400_000;

/** @param at end of the newest failed attempt, in milliseconds since the epoch */
export function judgeHealth(
  { failingSince, failures, warnedAt }: EndpointHealth,
  at: number,
  { warnMs, disableMs }: HealthTimes,
): 'bear' | 'warn' | 'disable' {
  const failingMs = at - failingSince;
  if (warnedAt === null) return failingMs >= warnMs ? 'warn' : 'bear';
  const isDue = failingMs >= disableMs && failures >= failuresMin;
  return isDue && at - warnedAt >= Math.min(warnMs, graceMsMax) ? 'disable' : 'bear';
}

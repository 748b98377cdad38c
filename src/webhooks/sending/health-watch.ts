/**
 * What is known of the health of one endpoint, in memory and in its row (`EndpointHealth`), and the writing of the one after the other.
 *
 * `#failing` is the run of failures since the last success; undefined: none. `#kept` is the row as it stands as far as is known. Before the
 * first read nothing is known of the row, and what is noted meanwhile is joined with what it says: a success ends the run in the row,
 * failures go on with it. One writer works at a time and looks again after each step, so notes that come during a write are not lost. A
 * row that somebody else removed was removed with an enabling or with the endpoint: the run is over.
 */
import { keptRow } from '../../store/kept-row.ts';
import {
  type Change,
  type Commit,
  type EventEntry,
  type Row,
  type Store,
  StoreUnavailable,
} from '../../store/store.ts';
import { operationalEvent } from './event-types/operational-events.ts';
import type { KnownEndpoint } from './known-endpoint.ts';
import { type EndpointHealth, endpointHealthTable } from './sending-tables.ts';

export type WatchOptions = {
  /** With fan-out: a warning is delivered. */
  readonly store: Pick<Store, 'commit' | 'read'>;
  readonly newId: () => string;
  readonly times: HealthTimes;
};

/** What is done about a run of failures. */
export type Acts = {
  disable(known: KnownEndpoint, since: number): Promise<void>;
  warned(known: KnownEndpoint, since: number): void;
};

/** Between two writes that only count. */
const countMs = 60_000;
/** Steps of one writer: what is left is done at the next note. */
const stepsMax = 32;

type Kept = {
  readonly rev: number;
  readonly createdAt: number;
  /** When it was written. */
  readonly at: number;
  readonly health: EndpointHealth;
};

export class Watch {
  readonly #options: WatchOptions;
  readonly #known: KnownEndpoint;
  readonly #acts: Acts;
  #failing: EndpointHealth | undefined;
  /** End of the newest failed attempt. */
  #failedAt = 0;
  #kept: Kept | undefined;
  #isRead = false;
  /** Since which the row has not been written: the run that it tells of is over. */
  #hasSucceeded = false;
  #isWriting = false;

  constructor(options: WatchOptions, known: KnownEndpoint, acts: Acts) {
    this.#options = options;
    this.#known = known;
    this.#acts = acts;
  }

  /** @returns the writing that it began, undefined where none is needed or one runs already; rejects with StoreUnavailable */
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

  /** Whether the row says what it must. */
  #isDone(): boolean {
    const failing = this.#failing;
    const kept = this.#kept;
    if (!this.#isRead) return false;
    if (failing === undefined) return kept === undefined;
    if (kept === undefined || kept.health.failingSince !== failing.failingSince) return false;
    return this.#failedAt - kept.at < countMs && this.#judge(failing) === 'bear';
  }

  #judge(failing: EndpointHealth): ReturnType<typeof judgeHealth> {
    return judgeHealth(failing, this.#failedAt, this.#options.times);
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
    const kept = keptOf(await this.#options.store.read(endpointHealthTable, this.#known.endpoint.id));
    this.#kept = kept;
    this.#isRead = true;
    this.#hasSucceeded &&= kept !== undefined;
    const failing = this.#failing;
    if (kept === undefined || failing === undefined || this.#hasSucceeded) return;
    // Failures that this process saw go on with those before.
    const failures = kept.health.failures + failing.failures;
    this.#failing = { ...newer(kept.health, failing), failures };
  }

  /** Takes the row away after a success. */
  async #end(): Promise<void> {
    if (this.#kept === undefined) return;
    const expect = { rev: this.#kept.rev };
    const change: Change = { table: endpointHealthTable, id: this.#known.endpoint.id, expect, next: null };
    const commit = await this.#options.store.commit({ changes: [change], events: [] });
    this.#kept = commit.outcome === 'committed' ? undefined : keptOf(currentOf(commit));
    this.#hasSucceeded &&= this.#kept !== undefined;
  }

  /** Writes the run down, with a warning if one is due. */
  async #keep(run: EndpointHealth, at: number): Promise<void> {
    const isWarning = this.#judge(run) === 'warn';
    const health = isWarning ? { ...run, warnedAt: at } : run;
    const commit = await this.#options.store.commit({
      changes: [this.#keepingChange(health, at)],
      events: isWarning ? [this.#warning(run, at)] : [],
    });
    if (commit.outcome !== 'committed') return this.#overtaken(currentOf(commit));
    this.#kept = { rev: commit.rev, createdAt: this.#kept?.createdAt ?? at, at, health };
    // A success during the write may have begun another run, of which nobody has been warned.
    if (this.#failing?.failingSince === run.failingSince) {
      this.#hasSucceeded = false;
      this.#failing = { ...this.#failing, warnedAt: health.warnedAt };
    }
    if (isWarning) this.#acts.warned(this.#known, run.failingSince);
  }

  #warning({ failingSince }: EndpointHealth, at: number): EventEntry {
    const { endpoint, owner } = this.#known;
    return operationalEvent('endpoint.failing', endpoint, owner, at, this.#options.newId, failingSince);
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

/** Of a row that another wrote meanwhile, or we ourselves without learning of it. */
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
 * When a failing endpoint is warned of and disabled (§6.8: disable what fails continuously for a long time, and tell its owner). Pure.
 *
 *   healthy   no failure since the last success
 *   failing   since the first failure after it; nothing happens yet
 *   warned    it has been failing for `warnMs`: its owner was told, once
 *   disabled  it has been failing for `disableMs`, by at least three attempts of the schedule, and the warning is old enough
 *
 * One success makes it healthy again from every state but the last, which its owner ends.
 *
 * Time alone condemns nobody: something must have been sent and have failed. An endpoint that failed once six days ago and once now has
 * been failing for six days as far as anybody knows, yet its owner has heard nothing. So nobody is disabled who was not
 * warned, and not before he could act: another `warnMs`, though at most a day, lies between the two. Whoever sets `warnMs` above `disableMs`
 * is warned when he would have been disabled, and disabled so much later.
 */

type HealthTimes = {
  readonly warnMs: number;
  readonly disableMs: number;
};

/** Attempts by schedule that must have failed before an endpoint is disabled. */
export const failuresMin = 3;
const graceMsMax = 86_400_000;

/** @param at milliseconds since the epoch: the end of the newest failed attempt */
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

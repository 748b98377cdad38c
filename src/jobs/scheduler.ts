/**
 * Creates the messages of jobs at their times. Every process has the timers of all jobs, and the row of the job decides
 * which of them creates the message: in one unit with the next time, so a run is created once, also through a crash.
 *
 * - A time that comes while a run waits for its next attempt replaces it: the earlier run has failed.
 * - A time that comes while a run is under way waits for its end; of several, the last.
 * - A time that passed long ago was missed: it runs once, or not at all (`ifMissed`).
 * - A next time that is further away than the times of the job was set by a clock that was ahead: it is set again.
 */
import { type DeclaredJob, type JobTimes, type JobTiming, jobTimes } from '../config/jobs.ts';
import { byId, type Filter } from '../model/filter.ts';
import { idFor } from '../model/id.ts';
import { type Received, receivedDocument } from '../model/received.ts';
import type { Services } from '../store/capabilities.ts';
import { rowBatches } from '../store/in-batches.ts';
import { type Change, keptRow, type Row } from '../store/store.ts';
import { ownMessageChanges } from '../webhooks/receiving/message-rows.ts';
import { receivedCollection } from '../webhooks/receiving/received-tables.ts';
import { Alarm, gatherHints, runtimeTimers, type Timers } from '../work/timers.ts';

/** Wakes the source of a message that was stored. */
export type WakeSource = (source: string) => void;

type Scheduler = {
  start(): Promise<void>;
  /** Waits for a commit under way. */
  close(): Promise<void>;
};

export function createScheduler(
  services: Services,
  jobs: ReadonlyMap<string, DeclaredJob>,
  wake: WakeSource,
  timers: Timers = runtimeTimers,
): Scheduler {
  return new JobScheduler(services, jobs, wake, timers);
}

/** A time is missed if it passed longer ago: a timer is late by less, also while the store is away for a moment. */
const missedMs = 60_000;
/** After a failure of the store, and while a run is under way whose end may not be noticed. */
const againMs = 5000;
/** Interval at which a process looks at its jobs, on a clock that is never set: one that is set back would delay the alarms. */
const lookMs = 300_000;
/** How many runs of other processes may come between a read and a commit. */
const triesMax = 20;
const statesPerRead = 200;

type Scheduled = { readonly job: DeclaredJob; readonly times: JobTimes };

class JobScheduler implements Scheduler {
  readonly #services: Services;
  readonly #wake: WakeSource;
  readonly #alarm: Alarm;
  readonly #timers: Timers;
  readonly #jobs = new Map<string, Scheduled>();
  /** Names of jobs with a time that waits for the end of a run. */
  readonly #waiting = new Set<string>();
  #last: Promise<void> = Promise.resolve();
  #stops: readonly (() => void)[] = [];
  #stopLooking: (() => void) | undefined;
  #isRunning = false;

  constructor(services: Services, jobs: ReadonlyMap<string, DeclaredJob>, wake: WakeSource, timers: Timers) {
    const { clock } = services;
    this.#services = services;
    this.#wake = wake;
    this.#timers = timers;
    this.#alarm = new Alarm(clock, (name) => this.#tick(name, false), timers);
    for (const job of jobs.values()) this.#jobs.set(job.name, { job, times: jobTimes(job.timing) });
  }

  async start(): Promise<void> {
    this.#isRunning = true;
    await this.#forgetUndeclared();
    if (this.#jobs.size === 0) return;
    // A run may have ended.
    const ended = gatherHints(this.#timers, () => {
      for (const name of this.#waiting) this.#tick(name, false);
    });
    const stopListening = this.#services.store.onChange(receivedCollection.name, () => {
      if (this.#waiting.size > 0) ended.hint();
    });
    this.#stops = [stopListening, ended.stop];
    this.#lookAtAll(true);
    await this.#last;
  }

  #lookAtAll(isStart: boolean): void {
    for (const name of this.#jobs.keys()) this.#tick(name, isStart);
    this.#stopLooking = this.#timers.after(lookMs, () => this.#lookAtAll(false));
  }

  close(): Promise<void> {
    this.#isRunning = false;
    for (const stop of this.#stops) stop();
    this.#stopLooking?.();
    this.#alarm.close();
    return this.#last;
  }

  /** A job that is declared again later begins anew, and has missed nothing. */
  async #forgetUndeclared(): Promise<void> {
    const { store } = this.#services;
    const filter: Filter = { op: 'and', filters: [] };
    const plan = store.plan({ table: jobStatesTable, filter, sort: byId, limit: statesPerRead });
    for await (const rows of rowBatches(plan, statesPerRead)) {
      for (const { id, rev } of rows) {
        if (this.#jobs.has(id)) continue;
        await store.commit(unit([{ table: jobStatesTable, id, expect: { rev }, next: null }]));
      }
    }
  }

  /** One at a time: jobs are few, and a look takes less than a millisecond. @param isStart the declaration takes effect */
  #tick(name: string, isStart: boolean): void {
    if (!this.#isRunning) return;
    this.#last = this.#last.then(async () => {
      const scheduled = this.#jobs.get(name);
      if (scheduled === undefined || !this.#isRunning) return;
      try {
        await this.#look(scheduled, isStart);
      } catch (error) {
        this.#services.observe({ kind: 'receiving-failed', what: `scheduling the job ${name}`, error });
        this.#alarm.set(name, this.#services.clock() + againMs);
      }
    });
  }

  async #look({ job, times }: Scheduled, isStart: boolean): Promise<void> {
    const { store, clock } = this.#services;
    for (let tries = 0; tries < triesMax; tries += 1) {
      const row = await store.read(jobStatesTable, job.name);
      const now = clock();
      const state = row === undefined ? undefined : stateOf(row);
      if (state === undefined || state.timing !== timingText(job.timing)) {
        // A process with another declaration has started since.
        if (!isStart) return;
        const commit = await store.commit(
          unit([stateChange(job, row, beginning(job, times, now, state), now)]),
        );
        if (commit.outcome !== 'committed') continue;
        return this.#rest(job, beginning(job, times, now, state), now);
      }
      const earlier = earlierThanSet(times, state, now);
      if (earlier !== undefined) {
        const reset = { ...state, nextRunAt: earlier };
        const commit = await store.commit(unit([stateChange(job, row, reset, now)]));
        if (commit.outcome !== 'committed') continue;
        const { nextRunAt: from } = state;
        this.#services.observe({ kind: 'job-rescheduled', job: job.name, from, to: earlier });
        return this.#rest(job, reset, now);
      }
      const current =
        state.lastRun === null ? undefined : await store.read(receivedCollection.name, state.lastRun);
      const step = nextStep({ job, times, state, now, current, id: idFor('message', this.#services.newId) });
      if (step === undefined) return this.#rest(job, state, now);
      const commit = await store.commit(unit([stateChange(job, row, step.state, now), ...step.changes]));
      if (commit.outcome === 'committed') {
        if (step.changes.length > 0) this.#wake(job.source.name);
        return this.#rest(job, step.state, now);
      }
      if (commit.change === 0 || commit.change === step.changes.length) continue;
      if (commit.change === 1) {
        // There is a message for this time: an earlier declaration had the same one.
        const without = { ...step.state, lastRun: state.lastRun, lastRunAt: state.lastRunAt };
        await store.commit(unit([stateChange(job, row, without, now)]));
      }
    }
    throw new Error(`other processes kept changing the row of the job ${job.name}`);
  }

  #rest(job: DeclaredJob, state: JobState, now: number): void {
    if (!this.#isRunning) return;
    const nextRunAt = Date.parse(state.nextRunAt);
    if (state.waitingFor === null) this.#waiting.delete(job.name);
    else this.#waiting.add(job.name);
    this.#alarm.set(job.name, state.waitingFor === null ? nextRunAt : Math.min(nextRunAt, now + againMs));
  }
}

function unit(changes: readonly Change[]): { readonly changes: readonly Change[]; readonly events: [] } {
  return { changes, events: [] };
}

/** The state of a job whose declaration is new or was changed: nothing was missed. */
function beginning(job: DeclaredJob, times: JobTimes, now: number, before: JobState | undefined): JobState {
  return {
    timing: timingText(job.timing),
    nextRunAt: timeText(times.after(now)),
    waitingFor: null,
    lastRun: before?.lastRun ?? null,
    lastRunAt: before?.lastRunAt ?? null,
  };
}

/** A time that does not come any more is that of the end of time; expressions that never come are refused at the start. */
function timeText(ms = 8.64e15): string {
  return new Date(ms).toISOString();
}

/**
 * The next time by this clock, if the one that is set is further away than clocks that differ a little explain. A run that is scheduled
 * again so has the key of the earlier one, and is created once.
 */
function earlierThanSet(times: JobTimes, { nextRunAt }: JobState, now: number): string | undefined {
  const latest = times.after(now + missedMs);
  return latest !== undefined && Date.parse(nextRunAt) > latest ? timeText(times.after(now)) : undefined;
}

type Looked = Scheduled & {
  readonly state: JobState;
  readonly now: number;
  /** The message of the last run, if it is still kept. */
  readonly current: Row | undefined;
  /** The id of the message that may be created. */
  readonly id: string;
};

type Step = {
  readonly state: JobState;
  /** The message of a run, then the end of the one that it replaces. */
  readonly changes: readonly Change[];
};

/** Pure. @returns undefined if there is nothing to do */
export function nextStep({ job, times, state, now, current, id }: Looked): Step | undefined {
  const due = Date.parse(state.nextRunAt);
  const isDue = due <= now;
  const scheduled = isDue ? Math.max(due, times.lastUntil(now) ?? due) : undefined;
  const isLate = scheduled !== undefined && now - scheduled > missedMs;
  const next = isDue ? timeText(times.after(now)) : state.nextRunAt;
  const wanted = scheduled === undefined || (isLate && job.ifMissed === 'skip') ? undefined : scheduled;
  const waitingFor = wanted === undefined ? state.waitingFor : timeText(wanted);
  if (waitingFor === null) return isDue ? { state: { ...state, nextRunAt: next }, changes: [] } : undefined;
  const message = current === undefined ? undefined : (JSON.parse(current.doc) as Received);
  const isPending = message?.status === 'pending';
  const isUnderWay = isPending && Date.parse(message.dueAt ?? '') <= now;
  if (isUnderWay) {
    const isNew = isDue || waitingFor !== state.waitingFor;
    return isNew ? { state: { ...state, nextRunAt: next, waitingFor }, changes: [] } : undefined;
  }
  const replaced = isPending && current !== undefined ? [replacedChange(current, message, now)] : [];
  const lastRunAt = new Date(now).toISOString();
  return {
    state: { ...state, nextRunAt: next, waitingFor: null, lastRun: id, lastRunAt },
    changes: [...runChanges(job, { id, scheduledAt: waitingFor, type: 'scheduled', now }), ...replaced],
  };
}

type Run = {
  /** `rec_...` */
  readonly id: string;
  /** ISO 8601. */
  readonly scheduledAt: string;
  readonly type: 'scheduled' | 'manual';
  readonly now: number;
};

/** The message of a run. Of those for one time only the first can be stored. */
export function runChanges({ source }: DeclaredJob, { id, scheduledAt, type, now }: Run): readonly Change[] {
  return ownMessageChanges({
    ...{ id, source: source.name, type, at: now },
    dedupeKey: type === 'scheduled' ? scheduledAt : `manual:${id}`,
    text: JSON.stringify({ scheduledAt }),
  });
}

/** The run has failed: the next one takes the place of its further attempts. */
function replacedChange(row: Row, message: Received, now: number): Change {
  const at = Math.max(now, row.updatedAt);
  const received: Received = {
    ...message,
    ...{ status: 'failed', dueAt: null, updatedAt: new Date(at).toISOString() },
  };
  return {
    ...{ table: receivedCollection.name, id: row.id, expect: { rev: row.rev } },
    next: keptRow(receivedDocument(received), null, row.createdAt, at),
  };
}

/** By the name of the job. */
export const jobStatesTable = 'job_states';

export type JobState = {
  /** The declaration that the times are of. A process with another declaration leaves the job alone. */
  readonly timing: string;
  /** ISO 8601, as all times here. */
  readonly nextRunAt: string;
  /** The last due time that came during a run, and runs after it; null: none. */
  readonly waitingFor: string | null;
  /** The message of the last run; null: none yet. */
  readonly lastRun: string | null;
  readonly lastRunAt: string | null;
};

function timingText(timing: JobTiming): string {
  return 'everyMs' in timing ? `every ${timing.everyMs}` : `${timing.cron} ${timing.timeZone}`;
}

export function stateOf(row: Row): JobState {
  return JSON.parse(row.doc) as JobState;
}

/** @param at milliseconds since the epoch */
export function stateChange(
  { name }: DeclaredJob,
  row: Row | undefined,
  state: JobState,
  at: number,
): Change {
  const createdAt = row?.createdAt ?? at;
  return {
    ...{ table: jobStatesTable, id: name },
    expect: row === undefined ? { absent: true } : { rev: row.rev },
    next: keptRow(JSON.stringify(state), null, createdAt, Math.max(at, createdAt)),
  };
}

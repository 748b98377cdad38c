/** The row of a job: when it is due next, and its last run. The run itself is a message of the inbox. */
import type { DeclaredJob, JobTiming } from '../config/jobs.ts';
import { type Change, keptRow, type Row } from '../store/store.ts';

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

export function timingText(timing: JobTiming): string {
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

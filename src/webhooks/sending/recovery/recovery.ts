/**
 * A recovery (§6.6): the request to send again what an endpoint missed, and its progress. Its document is its only
 * state.
 *
 *   running    it has a place in the log, and advances by chunks (recovery-step.ts)
 *   finished   it reached its end
 *   stopped    its endpoint was removed meanwhile
 *
 * A recovery that is deleted while it runs ends there.
 */
import { type Change, keptRow, type LogPosition, type NextRow, type Row } from '../../../store/store.ts';
import { recoveriesCollection } from '../sending-tables.ts';

export type RecoveryCounts = {
  readonly examined: number;
  readonly matching: number;
  readonly resent: number;
  readonly created: number;
};

export type Recovery = RecoveryCounts & {
  /** `rcv_...` */
  readonly id: string;
  readonly endpointId: string;
  /** ISO 8601, as are all times here; both ends are included. */
  readonly since: string;
  readonly until: string;
  readonly dryRun: boolean;
  readonly status: 'running' | 'finished' | 'stopped';
  readonly finishedAt: string | null;
  /** Absent before the first event was examined, and after the end. */
  readonly logAfter?: LogPlace;
  readonly logLast?: LogPlace;
  readonly runningFor?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
};

export type NewRecovery = Pick<Recovery, 'id' | 'endpointId' | 'since' | 'until' | 'dryRun'> & {
  /** The newest event at the time of the request: later ones are delivered anyway. */
  readonly last: LogPosition;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly owner: string | null;
};

/**
 * Returns the change that begins a recovery. If another one runs for the endpoint, the commit's outcome is `taken`,
 * because of `runningFor`.
 */
export function beginRecovery({ last, at, owner, ...parts }: NewRecovery): {
  readonly change: Change;
  readonly recovery: Recovery;
} {
  const time = new Date(at).toISOString();
  const recovery: Recovery = {
    ...parts,
    status: 'running',
    ...{ examined: 0, matching: 0, resent: 0, created: 0 },
    finishedAt: null,
    logLast: formatLogPlace(last),
    runningFor: parts.endpointId,
    createdAt: time,
    updatedAt: time,
  };
  const next = keptRow(JSON.stringify(recovery), owner, at, at);
  return { change: { table: recoveriesTable, id: recovery.id, expect: { absent: true }, next }, recovery };
}

export const recoveriesTable = recoveriesCollection.name;

/** Returns the recovery without internal members. */
export function shownRecovery(recovery: Recovery): Omit<Recovery, 'logAfter' | 'logLast' | 'runningFor'> {
  const { logAfter, logLast, runningFor, ...shown } = recovery;
  return shown;
}

/** The place where it continues; undefined: it has not begun. */
export function placeOf({ logAfter }: Recovery): LogPosition | undefined {
  return logAfter === undefined ? undefined : readLogPlace(logAfter);
}

export function endOf({ logLast }: Recovery): LogPosition {
  return logLast === undefined ? { rev: 0, id: '' } : readLogPlace(logLast);
}

export type Progress = {
  readonly counts: RecoveryCounts;
  readonly after: LogPosition;
};

/** @param at milliseconds since the epoch */
export function progressed(row: Row, recovery: Recovery, { counts, after }: Progress, at: number): Change {
  return changeTo(row, at, {
    ...recovery,
    examined: recovery.examined + counts.examined,
    matching: recovery.matching + counts.matching,
    resent: recovery.resent + counts.resent,
    created: recovery.created + counts.created,
    logAfter: formatLogPlace(after),
  });
}

export function ended(row: Row, recovery: Recovery, status: 'finished' | 'stopped', at: number): Change {
  const finishedAt = new Date(Math.max(at, row.updatedAt)).toISOString();
  return changeTo(row, at, { ...shownRecovery(recovery), status, finishedAt });
}

function changeTo(row: Row, at: number, recovery: Recovery): Change {
  const updatedAt = Math.max(at, row.updatedAt);
  const doc = JSON.stringify({ ...recovery, updatedAt: new Date(updatedAt).toISOString() });
  const next: NextRow = keptRow(doc, row.owner, row.createdAt, updatedAt);
  return { table: recoveriesTable, id: row.id, expect: { rev: row.rev }, next };
}

/** A place in the event log as a text: `{rev} {id}`. */
type LogPlace = string;

function formatLogPlace({ rev, id }: LogPosition): LogPlace {
  return `${rev} ${id}`;
}

function readLogPlace(place: LogPlace): LogPosition {
  const space = place.indexOf(' ');
  return { rev: Number(place.slice(0, space)), id: place.slice(space + 1) };
}

/** Returns true if `one` is after `other` in (rev, id) order. */
export function isBeyond(one: LogPosition, other: LogPosition): boolean {
  return one.rev === other.rev ? one.id > other.id : one.rev > other.rev;
}

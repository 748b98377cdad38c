/**
 * When a session was last seen, on which the idle time of its cookie rests. It is written in the background and at most ten times in
 * that time, so a busy browser costs the store next to nothing; the price is that a cookie may end up to a tenth early, never late.
 * A write that loses a race is dropped: the session was refreshed, seen by another process, or ended, and must not come back.
 */
import type { Row, Store } from '../../store/store.ts';
import { sessionsTable } from '../tables.ts';
import { readSession, sessionRow } from './session-row.ts';
import type { SessionsOptions } from './sessions.ts';

/** Parts of the idle time that must pass between two writes. */
const partsOfIdle = 10;
/** Writes under way at once; sightings beyond are left to the next request of their session. */
const writesMax = 1000;

export type Sightings = {
  /** What a verdict on the session calls for every use. */
  ofSession(row: Row): (nowMs: number) => void;
  /** Waits for writes under way. */
  close(): Promise<void>;
};

export function createSightings(options: {
  readonly store: Store;
  readonly observe: SessionsOptions['observe'];
  readonly sessionIdleSeconds: number;
}): Sightings {
  const { store, observe } = options;
  const stepMs = (options.sessionIdleSeconds * 1000) / partsOfIdle;
  const underWay = new Set<Promise<void>>();

  async function write(row: Row, seenAt: number): Promise<void> {
    const next = sessionRow(readSession(row), row.createdAt, seenAt);
    const change = { table: sessionsTable, id: row.id, expect: { rev: row.rev }, next };
    try {
      await store.commit({ changes: [change], events: [] });
    } catch (error) {
      observe({ kind: 'store-failed', what: 'noting when a session was seen', error });
    }
  }

  return {
    ofSession(row) {
      let writtenAt = row.updatedAt;
      return (nowMs) => {
        if (nowMs - writtenAt < stepMs || underWay.size >= writesMax) return;
        writtenAt = nowMs;
        const writing = write(row, nowMs);
        underWay.add(writing);
        void writing.then(() => underWay.delete(writing));
      };
    },
    async close() {
      await Promise.all(underWay);
    },
  };
}

/** The log of attempts to hand messages on: one row for each, never changed. Its document is what the inbox serves. */
import { keptRow } from '../../../store/kept-row.ts';
import type { Change } from '../../../store/store.ts';
import { attemptId } from '../../outbound/attempt-row.ts';
import { type ReceivedAttempt, receivedAttemptsTable } from '../tables.ts';
import type { Ended } from './conclude.ts';

const messageCharactersMax = 500;

export type AttemptFacts = {
  readonly number: number;
  readonly handedOn: Ended;
  readonly trigger: ReceivedAttempt['trigger'];
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
};

export function attemptOf({ number, handedOn, trigger, startedAt, endedAt }: AttemptFacts): ReceivedAttempt {
  const { outcome, statusCode } = handedOn;
  const failed = outcome === 'failed' ? handedOn : undefined;
  return {
    number,
    outcome,
    error: failed?.error ?? null,
    message: fitting(failed?.message ?? null),
    statusCode,
    trigger,
    at: new Date(startedAt).toISOString(),
    durationMs: endedAt - startedAt,
  };
}

/** The row of an attempt that is logged for the first time. */
export function attemptChange(messageId: string, facts: AttemptFacts): Change {
  return {
    table: receivedAttemptsTable,
    id: attemptId(messageId, facts.number),
    expect: { absent: true },
    next: keptRow(JSON.stringify(attemptOf(facts)), null, facts.startedAt, facts.endedAt),
  };
}

/** Cut, and fit for both stores: PostgreSQL's JSON holds neither U+0000 nor half of a surrogate pair. */
function fitting(text: string | null): string | null {
  return text === null ? null : text.slice(0, messageCharactersMax).toWellFormed().replaceAll('\0', '');
}

/**
 * Makes the change of a replay: the message is pending, due at once, and its schedule starts again. If its sender only
 * keeps messages, it waits to be marked again. Earlier attempts stay in the log and in the count.
 */
import type { Source } from '../../../config/sources.ts';
import type { Problem } from '../../../http/problem.ts';
import { type Received, receivedDocument } from '../../../model/received.ts';
import { type Change, keptRow, type Row } from '../../../store/store.ts';

/** @param at milliseconds since the epoch, not before the row's last change */
export function putBackChange(
  table: string,
  row: Row,
  { handOn }: Pick<Source, 'handOn'>,
  at: number,
): { readonly change: Change; readonly received: Received } {
  const now = new Date(at).toISOString();
  const received: Received = {
    ...(JSON.parse(row.doc) as Received),
    status: 'pending',
    scheduledAttempts: 0,
    dueAt: handOn.kind === 'inbox' ? null : now,
    lastError: null,
    updatedAt: now,
  };
  const next = keptRow(receivedDocument(received), row.owner, row.createdAt, at);
  return { change: { table, id: row.id, expect: { rev: row.rev }, next }, received };
}

/** The configuration no longer says how to hand on its messages. */
export const senderGone: Problem = { code: 'sender_unavailable' };

export const contentGone: Problem = { code: 'content_unavailable' };

/** The rows of a message of the program itself: an event for a subscriber, or the run of a job. Due at once. */
import { type Received, receivedDocument } from '../../model/received.ts';
import { type Change, keptRow } from '../../store/store.ts';
import { lineChange } from './message-lines.ts';
import {
  contentId,
  type ReceivedContent,
  receivedCollection,
  receivedContentsTable,
} from './received-tables.ts';

export type OwnMessage = {
  /** `rec_...` */
  readonly id: string;
  /** The name of the source. */
  readonly source: string;
  readonly dedupeKey: string;
  readonly type: string | null;
  /** JSON. */
  readonly text: string;
  readonly depth?: number | undefined;
  /** The line in which it is handled (message-lines.ts). */
  readonly line?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

/** The insert of the first row detects repetitions. */
export function ownMessageChanges(message: OwnMessage): readonly Change[] {
  const { id, source, dedupeKey, type, text, depth, line, at } = message;
  const body = Buffer.from(text);
  const time = new Date(at).toISOString();
  const contentType = 'application/json';
  const received: Received = {
    ...{ id, sender: source, dedupeKey, type, receivedAt: time, status: 'pending' },
    ...{ attempts: 0, scheduledAttempts: 0, dueAt: time, lastError: null },
    ...{ contentType, contentLength: body.length, createdAt: time, updatedAt: time },
  };
  const content: ReceivedContent = {
    ...{ id, contentType, contentEncoding: null, headers: {}, body: body.toString('base64') },
    ...(depth === undefined ? {} : { depth }),
    ...(line === undefined ? {} : { line }),
  };
  const absent = { absent: true } as const;
  return [
    {
      ...{ table: receivedContentsTable, id: contentId(source, dedupeKey), expect: absent },
      next: keptRow(JSON.stringify(content), null, at, at),
    },
    {
      ...{ table: receivedCollection.name, id, expect: absent },
      next: keptRow(receivedDocument(received), null, at, at),
    },
    ...(line === undefined ? [] : [lineChange(line, id, at)]),
  ];
}

/**
 * The rows of messages beside those of accept-message.ts: the parts of a long body, and messages of the program itself, an event for a
 * subscriber or the run of a job.
 */
import { setImmediate } from 'node:timers/promises';
import { messagePartOctets } from '../../memory/work-rules.ts';
import { type Received, receivedDocument } from '../../model/received.ts';
import { type Change, keptRow, type MaybePromise, type Row, type Store } from '../../store/store.ts';
import { lineChange } from '../../work/work-lines.ts';
import {
  contentId,
  linedMessages,
  type ReceivedContent,
  receivedCollection,
  receivedContentsTable,
} from './received-tables.ts';

/** Number of parts; 0: the body is in the row of its content. */
export function partsOf(length: number): number {
  return length > messagePartOctets ? Math.ceil(length / messagePartOctets) : 0;
}

/**
 * Commits the parts of a body, one after the other.
 * @returns what removes them again, where another message came first
 * @throws StoreUnavailable
 */
export async function keepParts(
  store: Pick<Store, 'commit'>,
  { id, body, ms }: { readonly id: string; readonly body: Uint8Array; readonly ms: number },
): Promise<readonly Change[]> {
  const removals: Change[] = [];
  for (let at = 0; at < body.length; at += messagePartOctets) {
    const slice = Buffer.from(
      body.buffer,
      body.byteOffset + at,
      Math.min(messagePartOctets, body.length - at),
    );
    const row = { table: receivedContentsTable, id: partId(id, removals.length + 1) };
    const next = keptRow(`{"body":"${slice.toString('base64')}"}`, null, ms, ms);
    const commit = await store.commit({ changes: [{ ...row, expect: { absent: true }, next }], events: [] });
    if (commit.outcome !== 'committed')
      throw new Error(`a part of the message could not be stored: ${commit.outcome}`);
    removals.push({ ...row, expect: { rev: commit.rev }, next: null });
  }
  return removals;
}

/** The octets of a body; undefined if a part of it is no longer kept. Parts are read in several turns of the event loop. */
export function bodyOf(
  store: Pick<Store, 'read'>,
  { id, body, parts = 0 }: Pick<ReceivedContent, 'id' | 'body' | 'parts'>,
  length: number,
): MaybePromise<Buffer<ArrayBuffer> | undefined> {
  return body === undefined ? joined(store, { id, parts }, length) : Buffer.from(body, 'base64');
}

async function joined(
  store: Pick<Store, 'read'>,
  { id, parts }: { readonly id: string; readonly parts: number },
  length: number,
): Promise<Buffer<ArrayBuffer> | undefined> {
  // Of its own memory, never that of a pool: it may be handed to a thread.
  const octets = Buffer.allocUnsafeSlow(length);
  let filled = 0;
  for (let number = 1; number <= parts; number += 1) {
    const row = await store.read(receivedContentsTable, partId(id, number));
    if (row === undefined) return undefined;
    filled += octets.write(textOf(row), filled, 'base64');
    await setImmediate();
  }
  return filled === length ? octets : undefined;
}

/** The only member of the row, which needs no escapes: parsing would make a second text of 4 MiB. */
function textOf({ doc }: Row): string {
  return doc.slice(doc.indexOf('"', doc.indexOf(':')) + 1, doc.lastIndexOf('"'));
}

/** No source is named as a message is, so no content of a message has such an id. */
function partId(id: string, number: number): string {
  return `${id}/${String(number).padStart(6, '0')}`;
}

type OwnMessage = {
  /** `rec_...` */
  readonly id: string;
  /** The name of the source. */
  readonly source: string;
  readonly dedupeKey: string;
  readonly type: string | null;
  /** JSON. */
  readonly text: string;
  readonly depth?: number | undefined;
  /** The line in which it is handled (work/work-lines.ts). */
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
    ...(line === undefined ? [] : [lineChange(linedMessages.linesTable, line, id, at)]),
  ];
}

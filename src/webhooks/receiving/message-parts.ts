/**
 * The body of a long message in parts: rows of the contents, `{message id}/{number from 1, six digits}`, each committed by a unit of its own
 * before the message. What is in one unit is held several times on its way to the store: a body of 20 MB took 280 MiB. The unit of the
 * message comes last and names their number, so there is no message without its parts; what a stop in between leaves is removed by retention,
 * as the parts of a message are.
 */
import { setImmediate } from 'node:timers/promises';
import { messagePartOctets } from '../../memory/work-rules.ts';
import { type Change, keptRow, type MaybePromise, type Row, type Store } from '../../store/store.ts';
import { type ReceivedContent, receivedContentsTable } from './received-tables.ts';

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

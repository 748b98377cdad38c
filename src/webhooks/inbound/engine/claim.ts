/**
 * A message as it stands at the moment at which it is handed on. It was found due a while ago, and since then it may have been marked,
 * replayed, removed, or handed on by another process.
 */
import type { Received } from '../../../model/received.ts';
import type { Row } from '../../../store/store.ts';
import { receivedCollection } from '../collections.ts';
import type { Claimed } from '../hand-on.ts';
import type { Failure } from '../settle/conclude.ts';
import { contentId, type ReceivedContent, receivedContentsTable } from '../tables.ts';
import type { EngineParts } from './parts.ts';
import type { Due, SenderQueue } from './sender-queue.ts';

/** The content of a message stands for as long as the message was received ago, and no longer (§4.14, retention). */
export const contentGone: Failure = {
  outcome: 'failed',
  error: 'content-gone',
  message: 'the body of the message is not kept any more',
  statusCode: null,
  permanent: true,
  notBefore: null,
};

export type Found = { readonly claimed: Claimed; readonly hasContent: boolean };

/** @returns undefined where nothing is to be done @throws StoreUnavailable */
export async function claim(
  { store, clock }: Pick<EngineParts, 'store' | 'clock'>,
  { sender }: SenderQueue,
  { id, dedupeKey }: Due,
): Promise<Found | undefined> {
  const [row, contentRow] = await Promise.all([
    store.read(receivedCollection.name, id),
    store.read(receivedContentsTable, contentId(sender.name, dedupeKey)),
  ]);
  if (row === undefined || row.deletedAt !== null) return undefined;
  const received = JSON.parse(row.doc) as Received;
  const { status, dueAt } = received;
  if (status !== 'pending' || dueAt === null || Date.parse(dueAt) > clock()) return undefined;
  const content = contentOf(contentRow, id);
  const claimed: Claimed = {
    ...{ sender, received, rev: row.rev, attempt: received.attempts + 1 },
    content: content ?? noContent(id),
  };
  return { claimed, hasContent: content !== undefined };
}

/** A message that came when the content of an older one with the same key was gone has put its own in that place. */
function contentOf(row: Row | undefined, messageId: string): ReceivedContent | undefined {
  if (row === undefined) return undefined;
  const content = JSON.parse(row.doc) as ReceivedContent;
  return content.id === messageId ? content : undefined;
}

function noContent(id: string): ReceivedContent {
  return { id, contentType: null, contentEncoding: null, headers: {}, body: '' };
}

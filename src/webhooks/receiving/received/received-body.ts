/**
 * GET of `/received/{id}/body`: the octets as received, with their Content-Type and Content-Encoding. `no-transform`
 * (RFC 9111 §5.2.2.6) keeps Comity and caches from coding them again. 404 when they are no longer kept.
 *
 * The content is untrusted: the response makes a browser save it, without sniffing its type or running it in Comity's
 * origin.
 */
import { pathParameter } from '../../../kernel/documentation.ts';
import type {
  Ask,
  Operation,
  Representation,
  Resource,
  Standing,
  Validators,
} from '../../../kernel/resource.ts';
import { messageOctets } from '../../../memory/work-rules.ts';
import { permission } from '../../../model/access.ts';
import type { Received } from '../../../model/received.ts';
import type { Served } from '../../../resources/collection/served.ts';
import { memberStanding } from '../../../resources/collection/standing.ts';
import { type MaybePromise, type Row, type Store, whenKnown } from '../../../store/store.ts';
import { bodyOf } from '../message-parts.ts';
import { contentId, type ReceivedContent, receivedContentsTable } from '../received-tables.ts';

type BodyStanding = Standing & { readonly id: string; readonly kept: Kept | undefined };

/** The octets alone, for as long as the response takes: the text of the row and its base64 are four times as long. */
type Kept = Pick<Row, 'rev' | 'createdAt'> &
  Pick<ReceivedContent, 'contentType' | 'contentEncoding'> & { readonly octets: Buffer };

const cacheControl = 'private, no-cache, no-transform';

/** The type of a message without a Content-Type (RFC 9110 §8.3). */
const octetStream = 'application/octet-stream';

export function bodyResource(served: Served): Resource {
  const { collection } = served;
  const operation: Operation<BodyStanding> = {
    documentation: {
      id: 'readReceivedBody',
      summary: 'Read the body that the sender posted',
      description:
        'The octets as received, with the Content-Type and the Content-Encoding of the message. 404 if Comity no longer keeps them.',
      member: { collection, action: 'read' },
      gives: { representation: { '*/*': {} } },
      representationFields: ['Content-Disposition', 'Content-Security-Policy'],
    },
    permission: (principal) => permission(served.collection.access.read, 'read', principal),
    standing: (ask) => bodyStanding(served, ask),
    validators: (_ask, standing) => ({ ...validatorsOf(standing), cacheControl }),
    represent: (_ask, standing) => represent(standing),
  };
  return {
    pattern: `${served.path}/{id}/body`,
    documentation: {
      name: 'ReceivedBody',
      noun: 'the body of a received message',
      tag: collection,
      parameters: [pathParameter('id', 'Id of the message.')],
    },
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    // The content has one representation only, for any Accept (RFC 9110 §12.4.1).
    offers: ['*/*', octetStream, 'application/json', 'application/x-www-form-urlencoded', 'text/plain'],
  };
}

function bodyStanding(served: Served, ask: Ask): MaybePromise<BodyStanding> {
  return whenKnown(memberStanding(served, ask, 'read'), (member) => {
    const { id, row, exists, visible, permitted } = member;
    if (!exists || !visible || !permitted || row === undefined) return { ...member, id, kept: undefined };
    const received = JSON.parse(row.doc) as Received;
    const { contentLength } = received;
    const room = ask.request.memory?.makeRoom(messageOctets(contentLength), contentLength);
    const read = () =>
      whenKnown(keptContent(served.store, received), (found) =>
        found === undefined ? undefined : keep(served.store, found, contentLength),
      );
    return whenKnown(room === undefined ? read() : room.then(read), (kept) => ({
      ...{ id, visible, permitted, kept },
      exists: kept !== undefined,
    }));
  });
}

type Found = { readonly row: Row; readonly content: ReceivedContent };

function keep(
  store: Pick<Store, 'read'>,
  { row: { rev, createdAt }, content }: Found,
  length: number,
): MaybePromise<Kept | undefined> {
  const { contentType, contentEncoding } = content;
  return whenKnown(bodyOf(store, content, length), (octets) =>
    octets === undefined ? undefined : { rev, createdAt, contentType, contentEncoding, octets },
  );
}

/**
 * Returns the content of the message; undefined if it is gone. After that, a repetition's own may be in its place.
 */
export function keptContent(
  store: Pick<Store, 'read'>,
  { id, sender, dedupeKey }: Pick<Received, 'id' | 'sender' | 'dedupeKey'>,
): MaybePromise<Found | undefined> {
  return whenKnown(store.read(receivedContentsTable, contentId(sender, dedupeKey)), (row) => {
    if (row === undefined) return undefined;
    const content = JSON.parse(row.doc) as ReceivedContent;
    return content.id === id ? { row, content } : undefined;
  });
}

function validatorsOf({ kept }: BodyStanding): Validators {
  return kept === undefined
    ? { tag: null, modifiedAt: null }
    : { tag: String(kept.rev), modifiedAt: kept.createdAt };
}

function represent(standing: BodyStanding): Representation {
  if (standing.kept === undefined) throw new Error('the response requires the body of the message');
  const { octets, contentType, contentEncoding } = standing.kept;
  return {
    content: octets,
    mediaType: contentType ?? octetStream,
    validators: validatorsOf(standing),
    cacheControl,
    fields: [
      ...(contentEncoding === null ? [] : ['Content-Encoding', contentEncoding]),
      'Content-Disposition',
      `attachment; filename="${standing.id}"`,
      'Content-Security-Policy',
      "sandbox; default-src 'none'",
    ],
  };
}

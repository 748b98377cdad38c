/**
 * `/received`: every message of a sender and its state (§4.14), a collection of which a client may change only
 * `status`, to mark a message. Senders create messages, and retention removes them. Ids are in the order of receipt, so
 * `sort=-id` lists the newest first at the cost of one page. The octets are at `/{id}/body`.
 */
import { Type } from 'typebox';
import type { Source } from '../../../config/senders.ts';
import type { FieldError, Problem } from '../../../http/problem.ts';
import { formatContentDisposition } from '../../../http/syntax/content-disposition.ts';
import { formatJsonPointer } from '../../../http/syntax/json-pointer.ts';
import { type ActionLimits, actionResource, type Done } from '../../../kernel/action.ts';
import {
  type CollectionOperation,
  type Item,
  type OperationDocumentation,
  pathParameter,
  representationOf,
} from '../../../kernel/documentation.ts';
import type {
  Ask,
  Operation,
  Proposal,
  Representation,
  Resource,
  Standing,
  Validators,
} from '../../../kernel/resource.ts';
import { messageOctets } from '../../../memory/work-rules.ts';
import { permission } from '../../../model/access.ts';
import type { Collection } from '../../../model/collection.ts';
import { idPrefixes } from '../../../model/id.ts';
import type { Received } from '../../../model/received.ts';
import { type MemberStanding, memberStanding, onMember } from '../../../resources/collection/member.ts';
import { timeAfter } from '../../../resources/collection/row.ts';
import { type ServedCollection, serveCollection } from '../../../resources/collection/serve-collection.ts';
import type { Served, Serving } from '../../../resources/collection/served-collection.ts';
import { type NewFields, type Revise, revised } from '../../../resources/collection/write-operations.ts';
import type { Services } from '../../../store/capabilities.ts';
import { tryCommit } from '../../../store/lines.ts';
import { type MaybePromise, Overtaken, type Row, type Store, whenKnown } from '../../../store/store.ts';
import { type AttemptsDocumentation, attemptsResource } from '../../routes/attempt-routes.ts';
import { bodyOf } from '../message-rows.ts';
import {
  contentId,
  type ReceivedContent,
  receivedAttemptsTable,
  receivedCollection,
  receivedContentsTable,
} from '../received-tables.ts';
import { contentGone, putBackChange, replayByQueryResource, senderGone } from './replay-by-query.ts';

const changeable = 'status';

/** The inbox as served: only `status` is writable. */
const inboxCollection: Collection = {
  ...receivedCollection,
  unpatchable: new Set(
    Object.keys(receivedCollection.schema.properties).filter((name) => name !== changeable),
  ),
};

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read', 'patch']);

const listNote = 'In the order of receipt; `sort=-id` returns the newest first, at the same cost.';

/** @param sources senders, subscribers and jobs: a message of any other can be read and marked, but not replayed */
export function receivedResources(
  { settings }: Pick<Services, 'settings'>,
  sources: ReadonlyMap<string, Source>,
  serving: Serving,
): ServedCollection {
  const plain = serveCollection(serving, inboxCollection, {
    announced: false,
    operations,
    documentation: {
      names: {
        singular: 'ReceivedMessage',
        plural: 'ReceivedMessages',
        one: 'a received message',
        many: 'received messages',
      },
      audience: 'operator',
      idPrefix: idPrefixes.message,
      revise: { list: (standard) => ({ ...standard, description: listNote }), patch: markDocumentation },
    },
  });
  const { served } = plain;
  const limits = serving.settings;
  return {
    ...plain,
    resources: [
      ...plain.resources.map((resource) => ({
        ...resource,
        operations: new Map(
          [...resource.operations].map(([method, operation]) => [
            method,
            method === 'PATCH' ? markOperation(operation, served.path) : operation,
          ]),
        ),
      })),
      bodyResource(served),
      receivedAttemptsResource(served, limits.listLimitMax),
      replayResource(sources, served, limits),
      replayByQueryResource(sources, served, {
        ...{ ...limits, query: limits, messagesMax: settings.receivedReplayMax },
      }),
    ],
  };
}

/**
 * PATCH of `/received/{id}`: marks a message `processed` or `failed` by hand, which takes it from the receiving engine.
 * Writes of a handler that is still running are dropped with its attempt: the mark stays (settle-received.ts).
 * `pending` is not a mark: a replay restores it, and sets the due time.
 *
 * The constant is the `lastError` of a message that was marked as failed.
 */
const markedError = 'marked';

/** @param operation PATCH of the collection @param path `/api/v1/received` */
function markOperation(operation: Operation, path: string): Operation {
  return revised(saidRight(operation), marking(path));
}

/** The differences from the PATCH of any collection: only `status` can change. */
function markDocumentation(standard: OperationDocumentation): OperationDocumentation {
  const merge = { value: { status: 'processed' } };
  const json = { value: [{ op: 'replace', path: '/status', value: 'failed' }] };
  const examples: Readonly<Record<string, Item>> = {
    'application/merge-patch+json': { mark: merge },
    'application/json-patch+json': { mark: json },
    'application/json': { mark: merge },
  };
  const content = Object.entries(standard.takes ?? {}).map(
    ([type, item]) => [type, { ...item, examples: examples[type] ?? {} }] as const,
  );
  return {
    ...standard,
    summary: 'Mark a received message',
    description:
      'Sets `status` to `processed` or `failed`; Comity then no longer hands on the message. No other member can be changed. A replay makes the message pending again.',
    takes: Object.fromEntries(content),
  };
}

function marking(path: string): Revise {
  return ({ before, fields }) => {
    const { status } = fields as Pick<Received, 'status'>;
    const current = before === undefined ? undefined : (JSON.parse(before.doc) as Received);
    if (status === current?.status) return { fields };
    if (status === 'pending') {
      const message = `cannot be set back to pending; POST to ${path}/${current?.id ?? '{id}'}/replay hands the message on again`;
      return { refused: { code: 'validation_failed', errors: [{ pointer: '/status', message }] } };
    }
    const lastError = status === 'failed' ? markedError : null;
    return { fields: { ...fields, dueAt: null, lastError } satisfies NewFields };
  };
}

/** Rewords the refusal: a collection says that such fields are fixed at creation, but here the program changes them. */
function saidRight(operation: Operation): Operation {
  const { propose } = operation;
  if (propose === undefined) throw new Error('a patch requires a propose stage');
  return {
    ...operation,
    propose: async (ask, standing, content): Promise<Proposal> => {
      const proposal = await propose(ask, standing, content);
      const { problem } = proposal;
      return problem?.code === 'field_unpatchable' ? { ...proposal, problem: readOnly(problem) } : proposal;
    },
  };
}

const own = new Set([...inboxCollection.unpatchable].map((name) => formatJsonPointer([name])));

/** A patch that removes such a member gets two errors, which this merges into one. */
function readOnly(problem: Problem): Problem {
  const errors = new Map<string, FieldError>();
  for (const error of problem.errors ?? []) {
    const message = own.has(error.pointer) ? 'is read-only; only status can be changed' : error.message;
    errors.set(error.pointer, { ...error, message });
  }
  return { ...problem, errors: [...errors.values()] };
}

// `/received/{id}/attempts`: the attempts to hand on a message, oldest first.

function receivedAttemptsResource(served: Served, limitMax: number): Resource {
  return attemptsResource(served, receivedAttemptsTable, limitMax, documentation);
}

const attemptSchema: Item = {
  description: 'One attempt to hand on a message.',
  type: 'object',
  properties: {
    number: { type: 'integer', minimum: 1 },
    outcome: { enum: ['processed', 'failed'] },
    error: {
      type: ['string', 'null'],
      description:
        'Kind of the failure: `thrown`, `timeout`, `unprocessable`, `thread-ended`, `refused`, `status`, or the kind of connection failure.',
    },
    message: { type: ['string', 'null'], description: 'Message for people.' },
    statusCode: {
      type: ['integer', 'null'],
      description: 'Status of the response to the forwarded message.',
    },
    trigger: { enum: ['automatic', 'manual'] },
    at: { type: 'string', format: 'date-time' },
    durationMs: { type: 'number' },
  },
  required: ['number', 'outcome', 'error', 'message', 'statusCode', 'trigger', 'at', 'durationMs'],
};

const attemptExample: Item = {
  number: 1,
  outcome: 'failed',
  error: 'thrown',
  message: 'no product has the sku K-7',
  statusCode: null,
  trigger: 'automatic',
  at: '2026-08-01T09:30:00.000Z',
  durationMs: 12,
};

const documentation: AttemptsDocumentation = {
  name: 'ReceivedAttempt',
  of: 'Id of the message.',
  summary: 'List the attempts to hand on a message',
  pageDescription: 'A page of attempts to hand on a message.',
  schema: attemptSchema,
  example: attemptExample,
};

// POST to `/received/{id}/replay`: hands the message on again, whatever its state. The response, 202, comes first. The
// process of the sender's lane notices the change of the table.

function replayResource(
  sources: ReadonlyMap<string, Source>,
  served: Served,
  limits: ActionLimits,
): Resource {
  return actionResource(
    {
      ...onMember(served, 'replay', 'update', 'Id of the message.'),
      id: 'replayReceivedMessage',
      summary: 'Replay a message',
      description:
        'Regardless of its status: the message becomes pending and due immediately, and its schedule of retries restarts. 409 if its body or its sender no longer exists.',
      input: { name: 'ReceivedReplay', schema: Type.Object({}), example: {}, optional: true },
      output: { schema: representationOf(served.collection) },
      answers: 'queued',
      codes: ['content_unavailable', 'sender_unavailable'],
      changes: ({ captures }) => ({ table: served.collection.name, id: captures[0] ?? '' }),
      handler: (_ask, _input, standing) => replay(sources, served, standing),
    },
    limits,
  );
}

async function replay(
  sources: ReadonlyMap<string, Source>,
  served: Served,
  { row, id }: MemberStanding,
): Promise<Done> {
  const { store, clock, collection, path } = served;
  if (row === undefined) throw new Error('a replay requires the row of its message');
  const current = JSON.parse(row.doc) as Received;
  const sender = sources.get(current.sender);
  if (sender === undefined) return { refused: senderGone };
  if ((await keptContent(store, current)) === undefined) return { refused: contentGone };
  const { change, received } = putBackChange(collection.name, row, sender, timeAfter(clock, row.updatedAt));
  const commit = await tryCommit(store, { changes: [change], events: [] });
  if (commit instanceof Overtaken) return commit;
  return { content: received, queued: `${path}/${id}` };
}

type BodyStanding = Standing & { readonly id: string; readonly kept: Kept | undefined };

/** The octets alone, for as long as the response takes: the text of the row and its base64 are four times as long. */
type Kept = Pick<Row, 'rev' | 'createdAt'> &
  Pick<ReceivedContent, 'contentType' | 'contentEncoding'> & { readonly octets: Buffer };

const cacheControl = 'private, no-cache, no-transform';

/** The type of a message without a Content-Type (RFC 9110 §8.3). */
const octetStream = 'application/octet-stream';

function bodyResource(served: Served): Resource {
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
function keptContent(
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
      formatContentDisposition('attachment', standing.id),
      'Content-Security-Policy',
      "sandbox; default-src 'none'",
    ],
  };
}

/**
 * `/received`: every message that a sender posted and what became of it (§4.14), as a collection of which a client
 * may change one thing: `status`, to mark a message (mark.ts). Messages are made by their senders alone and leave by age.
 *
 * Ids are in the order of receipt, so `sort=-id` is the newest first at the cost of a page. The octets are at `/{id}/body`.
 */

import type { FieldError, Problem } from '../../../http/problem.ts';
import { formatJsonPointer } from '../../../http/syntax/json-pointer.ts';
import type { CollectionOperation, Item, OperationDocumentation } from '../../../kernel/documentation.ts';
import type { Operation, Proposal } from '../../../kernel/resource.ts';
import type { Collection } from '../../../model/collection.ts';
import type { Received } from '../../../model/received.ts';
import { type NewFields, type Revise, revised } from '../../../resources/collection/revised.ts';
import {
  type ServedCollection,
  type Serving,
  serveCollection,
} from '../../../resources/collection/serving.ts';
import { receivedCollection } from '../received-tables.ts';
import { receivedAttemptsResource } from './received-attempts.ts';
import { bodyResource } from './received-body.ts';
import type { ReceivedResourcesOptions } from './received-route-options.ts';
import { replayResource } from './replay.ts';
import { replayByQueryResource } from './replay-by-query.ts';

const changeable = 'status';

/** The inbox as it is served: everything but `status` is what the program says of a message, and nobody else does. */
const inboxCollection: Collection = {
  ...receivedCollection,
  unpatchable: new Set(
    Object.keys(receivedCollection.schema.properties).filter((name) => name !== changeable),
  ),
};

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read', 'patch']);

const listNote = 'In the order of receipt; `sort=-id` is the newest first, at the same cost.';

export function receivedResources(options: ReceivedResourcesOptions, serving: Serving): ServedCollection {
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
      idPrefix: 'rec_',
      revise: { list: (standard) => ({ ...standard, description: listNote }), patch: markDocumentation },
    },
  });
  const { served } = plain;
  const limits = { ...serving.contentLimits, validationErrorsMax: serving.validationErrorsMax };
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
      receivedAttemptsResource(served, serving.queryLimits.listLimitMax),
      replayResource(options, served, limits),
      replayByQueryResource(options, served, { ...limits, query: serving.queryLimits }),
    ],
  };
}

/**
 * PATCH of `/received/{id}`: marks a message `processed` or `failed` by hand, which takes it from whoever hands messages on. What was
 * written meanwhile by a handler that still runs is dropped with its attempt: the mark stands (webhooks/receiving/settle-received.ts). `pending` is no
 * mark; a message becomes it again by a replay, which says when it is due as well.
 *
 * What `lastError` says of a message that somebody gave up.
 */
const markedError = 'marked';

/** @param operation PATCH of the collection @param path `/api/v1/received` */
function markOperation(operation: Operation, path: string): Operation {
  return revised(saidRight(operation), marking(path));
}

/** How it differs from the PATCH of any collection: `status` is all that there is to change. */
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
      '`status` becomes `processed` or `failed`, and the message is handed on no more; nothing else can be changed. A replay makes it pending again.',
    takes: Object.fromEntries(content),
  };
}

function marking(path: string): Revise {
  return ({ before, fields }) => {
    const { status } = fields as Pick<Received, 'status'>;
    const stood = before === undefined ? undefined : (JSON.parse(before.doc) as Received);
    if (status === stood?.status) return { fields };
    if (status === 'pending') {
      const message = `cannot be set back to pending; POST to ${path}/${stood?.id ?? '{id}'}/replay hands the message on again`;
      return { refused: { code: 'validation_failed', errors: [{ pointer: '/status', message }] } };
    }
    const lastError = status === 'failed' ? markedError : null;
    return { fields: { ...fields, dueAt: null, lastError } satisfies NewFields };
  };
}

/** A collection calls what may not change fixed at creation; here it changes by itself. */
function saidRight(operation: Operation): Operation {
  const { propose } = operation;
  if (propose === undefined) throw new Error('a patch that proposes nothing');
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

/** A patch that removes one is refused for two reasons, which here are one. */
function readOnly(problem: Problem): Problem {
  const errors = new Map<string, FieldError>();
  for (const error of problem.errors ?? []) {
    const message = own.has(error.pointer) ? 'is read-only: status alone can be changed' : error.message;
    errors.set(error.pointer, { ...error, message });
  }
  return { ...problem, errors: [...errors.values()] };
}

/**
 * `/received`: every message of a sender and its state (§4.14), a collection of which a client may change only
 * `status`, to mark a message. Senders create messages, and retention removes them. Ids are in the order of receipt, so
 * `sort=-id` lists the newest first at the cost of one page. The octets are at `/{id}/body`.
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

/** The inbox as served: only `status` is writable. */
const inboxCollection: Collection = {
  ...receivedCollection,
  unpatchable: new Set(
    Object.keys(receivedCollection.schema.properties).filter((name) => name !== changeable),
  ),
};

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read', 'patch']);

const listNote = 'In the order of receipt; `sort=-id` returns the newest first, at the same cost.';

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

/**
 * `/received`: every message that a sender posted and what became of it (§4.14, surface "Webhooks in"), as a collection of which a client
 * may change one thing: `status`, to mark a message (mark.ts). Messages are made by their senders alone and leave by age.
 *
 * Ids are in the order of receipt, so `sort=-id` is the newest first at the cost of a page. The octets are at `/{id}/body`.
 */
import type { CollectionOperation } from '../../collection/resources.ts';
import { type ServedCollection, type Serving, serveCollection } from '../../collection/serving.ts';
import { receivedAttemptsResource } from './attempts.ts';
import { bodyResource } from './body.ts';
import { inboxCollection } from './collection.ts';
import { markOperation } from './mark.ts';
import type { ReceivedResourcesOptions } from './options.ts';
import { replayResource } from './replay.ts';
import { replayByQueryResource } from './replay-by-query.ts';

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read', 'patch']);

export function receivedResources(options: ReceivedResourcesOptions, serving: Serving): ServedCollection {
  const plain = serveCollection(serving, inboxCollection, { announced: false, operations });
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

/**
 * `/deliveries`: the log of what was sent to whom (§3, §6), as a collection that nobody writes to. One is sent again by resend.ts; what
 * each attempt came to is in attempts.ts.
 */

import { deliveriesCollection } from '../../../webhooks/outbound/collections.ts';
import type { CollectionOperation } from '../../collection/resources.ts';
import { type ServedCollection, type Serving, serveCollection } from '../../collection/serving.ts';
import { deliveryAttemptsResource } from './attempts.ts';
import type { DeliveryResourcesOptions } from './options.ts';
import { resendResource } from './resend.ts';

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read']);

export function deliveryResources(options: DeliveryResourcesOptions, serving: Serving): ServedCollection {
  const plain = serveCollection(serving, deliveriesCollection, { announced: false, operations });
  const { contentLimits, validationErrorsMax } = serving;
  const limits = { ...contentLimits, validationErrorsMax };
  return {
    ...plain,
    resources: [
      ...plain.resources,
      deliveryAttemptsResource(plain.served, serving.queryLimits.listLimitMax),
      resendResource(options, plain.served, limits),
    ],
  };
}

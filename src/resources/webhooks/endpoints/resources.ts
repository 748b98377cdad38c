/**
 * `/endpoints`: where events are sent (§5.6, §6), as a collection. Everybody whose credential bears `webhooks` has their own; administrators
 * see all. The secret stands in the answers that make it and nowhere else.
 */
import {
  deliveriesCollection,
  endpointsCollection,
  recoveriesCollection,
} from '../../../webhooks/outbound/collections.ts';
import { type Revise, revised } from '../../collection/revised.ts';
import { type ServedCollection, type Serving, serveCollection } from '../../collection/serving.ts';
import type { Resource } from '../../resource.ts';
import { accompanyEndpoint } from './accompany.ts';
import { createEndpointOperation } from './create.ts';
import type { EndpointResourcesOptions } from './options.ts';
import { recoverResource } from './recover.ts';
import { reviseEndpoint } from './revise.ts';
import { rotateSecretResource } from './rotate-secret.ts';
import { testEndpointResource } from './test-endpoint.ts';
import { withGeneration } from './with-generation.ts';

export function endpointResources(options: EndpointResourcesOptions, serving: Serving): ServedCollection {
  const { base, contentLimits, validationErrorsMax } = serving;
  const store = withGeneration(serving.store, options.directory);
  const revise = reviseEndpoint({ ...options, validationErrorsMax });
  const plain = serveCollection({ ...serving, store }, endpointsCollection, {
    announced: false,
    accompany: accompanyEndpoint(store, options.directory),
    create: (served) => createEndpointOperation(options, served, revise),
  });
  const limits = { ...contentLimits, validationErrorsMax };
  const { served } = plain;
  const deliveries = `${base}/${deliveriesCollection.name}`;
  const recoveries = `${base}/${recoveriesCollection.name}`;
  return {
    ...plain,
    resources: [
      ...plain.resources.map((resource) => withChecks(resource, revise)),
      rotateSecretResource(options, served, limits),
      testEndpointResource(options, served, { deliveries }, limits),
      recoverResource(options, served, { recoveries }, limits),
    ],
  };
}

function withChecks(resource: Resource, revise: Revise): Resource {
  const operations = [...resource.operations].map(([method, operation]) => {
    const writes = method === 'PUT' || method === 'PATCH';
    return [method, writes ? revised(operation, revise) : operation] as const;
  });
  return { ...resource, operations: new Map(operations) };
}

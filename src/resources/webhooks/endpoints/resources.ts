/**
 * `/endpoints`: where events are sent (§5.6, §6), as a collection. Everybody whose credential bears `webhooks` has their own; administrators
 * see all. The secret stands in the answers that make it and nowhere else.
 */
import {
  deliveriesCollection,
  endpointsCollection,
  recoveriesCollection,
} from '../../../webhooks/outbound/collections.ts';
import type { Headers } from '../../../webhooks/outbound/endpoint-headers.ts';
import { patchOperation } from '../../collection/patch.ts';
import { replaceOperation } from '../../collection/replace.ts';
import { type FieldsProposal, type Revise, revised } from '../../collection/revised.ts';
import type { Served } from '../../collection/served.ts';
import { type ServedCollection, type Serving, serveCollection } from '../../collection/serving.ts';
import type { Operation, Resource } from '../../resource.ts';
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
  const accompany = accompanyEndpoint(store, options.directory);
  const plain = serveCollection({ ...serving, store }, endpointsCollection, {
    announced: false,
    accompany,
    create: (served) => createEndpointOperation(options, served, revise),
  });
  const limits = { ...contentLimits, validationErrorsMax };
  const { served } = plain;
  const deliveries = `${base}/${deliveriesCollection.name}`;
  const recoveries = `${base}/${recoveriesCollection.name}`;
  return {
    ...plain,
    resources: [
      ...plain.resources.map((resource) => withChecks(resource, served, { revise, accompany })),
      rotateSecretResource(options, served, limits),
      testEndpointResource(options, served, { deliveries }, limits),
      recoverResource(options, served, { recoveries }, limits),
    ],
  };
}

type Checks = { readonly revise: Revise; readonly accompany: ReturnType<typeof accompanyEndpoint> };

/** Changes are made at once: a request that waits is kept as it came, with the values of its header fields. */
function withChecks(resource: Resource, served: Served, { revise, accompany }: Checks): Resource {
  const operations = [...resource.operations].map(([method, operation]) => {
    const build = method === 'PUT' ? replaceOperation : method === 'PATCH' ? patchOperation : undefined;
    if (build === undefined) return [method, operation] as const;
    const act: NonNullable<Operation['act']> = async (ask, standing, proposal) => {
      const { secret } = (proposal ?? {}) as Partial<FieldsProposal>;
      const own = build({
        ...served,
        accompany: (written) => accompany(written, secret as Headers | undefined),
      }) as Operation;
      if (own.act === undefined) throw new Error('a change that changes nothing');
      return own.act(ask, standing, proposal);
    };
    return [method, revised({ ...operation, act, asynchronous: false }, revise)] as const;
  });
  return { ...resource, operations: new Map(operations) };
}

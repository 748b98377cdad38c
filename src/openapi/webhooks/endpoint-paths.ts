/** Endpoints (§5.6, §6): a collection of the program's own, the rotation of their secrets, tests and recoveries, as in resources/webhooks. */
import { type Action, actionDescription } from '../accounts/action.ts';
import { collectionPaths } from '../collection-paths.ts';
import { ref } from '../item.ts';
import { memberTraits } from '../member-traits.ts';
import type { Description } from '../operation.ts';
import type { PathDescription } from '../path-item.ts';
import { pathParameter } from '../path-parameter.ts';
import { builtInNames } from '../schema-names.ts';
import type { WebhookSetting } from './webhook-setting.ts';

const secret = 'whsec_k3yOfTheEndpointInBase64ThatNobodyElseHas00';
const createdAt = '2026-08-01T09:30:00.000Z';
const madeEndpointExample = {
  id: 'ep_01k1jx7v2mh5s8b4c9d0e6f3ga',
  url: 'https://shop.example/hooks',
  events: ['products.*'],
  scheme: 'standard',
  status: 'enabled',
  createdAt,
  updatedAt: createdAt,
  secret,
};
/** An endpoint as it is answered when it is made and when its secret is rotated. */
const madeEndpoint = {
  allOf: [
    ref('schemas', builtInNames.endpoints.singular),
    {
      type: 'object',
      properties: {
        secret: {
          type: 'string',
          description: 'What its deliveries are signed with. It is shown this once.',
        },
      },
      required: ['secret'],
    },
  ],
};

export function endpointPaths(setting: WebhookSetting): readonly PathDescription[] {
  const { collections, base, limits, components } = setting;
  const { endpoints } = collections;
  return [
    ...collectionPaths(endpoints, builtInNames.endpoints, base, limits, components, {
      idPrefix: 'ep_',
      revise: { create: withSecret },
    }),
    ...actionPaths(setting),
  ];
}

/** Its answer holds the secret, so it is kept for its caller alone and leaves nothing out. */
function withSecret(create: Description): Description {
  const { preferences: _none, ...rest } = create;
  const { traits } = create;
  return {
    ...rest,
    description:
      'The answer shows the secret, this once; a repetition under one Idempotency-Key with the same credential shows it again. `mode` goes with the scheme `timestamped` alone; the caller’s own tenant is set where it belongs to one.',
    traits: {
      ...traits,
      answersForms: false,
      idempotent: true,
      asynchronous: false,
      resultCodes: [...traits.resultCodes, 'endpoints_exhausted', 'idempotency_result_sealed'],
    },
    content: { created: { 'application/json': { schema: madeEndpoint, example: madeEndpointExample } } },
  };
}

function actionPaths({ collections, base, limits, components }: WebhookSetting): readonly PathDescription[] {
  const { endpoints } = collections;
  const { gate, mayBeMissing, mayBeHidden, mayBeClosed } = memberTraits(endpoints, 'update');
  const shared = { tag: endpoints.name, traits: { gate, mayBeMissing, mayBeHidden, mayBeClosed } };
  const path = (rest: string, noun: string, action: Omit<Action, keyof typeof shared>): PathDescription => ({
    path: `${base}/endpoints/{id}/${rest}`,
    name: action.takes[0],
    noun,
    parameters: [pathParameter('id', 'Of the endpoint.')],
    operations: [actionDescription({ ...action, ...shared }, components)],
  });
  return [
    path('rotate-secret', 'the rotation of a secret', rotation(limits.secretOverlapSecondsMax)),
    path('test', 'a test of an endpoint', trial),
    path('recover', 'a recovery of an endpoint', recovery),
  ];
}

type EndpointAction = Omit<Action, 'tag' | 'traits'>;

function rotation(overlapSecondsMax: number): EndpointAction {
  const schema = {
    type: 'object',
    properties: {
      overlapSeconds: {
        type: 'integer',
        minimum: 0,
        maximum: overlapSecondsMax,
        description: 'How long the secrets that it replaces sign beside it. 0 where it is left out.',
      },
    },
    additionalProperties: false,
  };
  return {
    id: 'rotateSecret',
    summary: 'Give an endpoint a new secret',
    description:
      'The answer shows it, this once. While the others sign beside it, every delivery carries a signature for each.',
    takes: ['SecretRotation', { schema, example: { overlapSeconds: 3600 } }],
    contentOptional: true,
    answer: madeEndpoint,
    answerExample: madeEndpointExample,
    codes: [],
  };
}

const testContent = {
  schema: {
    type: 'object',
    properties: {
      type: {
        type: 'string',
        minLength: 1,
        maxLength: 200,
        description:
          'A type of which there is a sample, as `/event-types` lists them. Default `endpoint.test`.',
      },
    },
    additionalProperties: false,
  },
  example: { type: 'endpoint.test' },
};

const trial: EndpointAction = {
  id: 'testEndpoint',
  summary: 'Send an endpoint an event for a test',
  description: 'Whatever it asks for, and to no other. Location leads to the delivery.',
  takes: ['EndpointTest', testContent],
  contentOptional: true,
  queues: true,
  answer: ref('schemas', builtInNames.deliveries.singular),
  codes: ['endpoint_unavailable', 'validation_failed'],
};

const time = { type: 'string', format: 'date-time' };
const recoveryContent = {
  schema: {
    type: 'object',
    properties: {
      since: { ...time, description: 'In the past.' },
      until: { ...time, description: 'Default: now.' },
      dryRun: { type: 'boolean', description: 'Counts and sends nothing.' },
    },
    required: ['since'],
    additionalProperties: false,
  },
  example: { since: createdAt },
};

const recovery: EndpointAction = {
  id: 'recoverEndpoint',
  summary: 'Send again what an endpoint missed',
  description:
    'Events of the time that it was never sent, and deliveries that failed and are not due. Location leads to the recovery, which tells how far it has come. One at a time for each endpoint.',
  takes: ['EndpointRecovery', recoveryContent],
  queues: true,
  answer: ref('schemas', builtInNames.recoveries.singular),
  codes: ['endpoint_unavailable', 'recovery_running', 'validation_failed'],
};

/** The inbox (§4.14): received messages as a collection, their bodies and attempts, marks and replays, as in resources/webhooks/received. */
import { actionDescription } from '../accounts/action.ts';
import { collectionPaths } from '../collection-paths.ts';
import { type Item, ref } from '../item.ts';
import { memberTraits } from '../member-traits.ts';
import type { Description } from '../operation.ts';
import type { PathDescription } from '../path-item.ts';
import { pathParameter } from '../path-parameter.ts';
import { builtInNames } from '../schema-names.ts';
import { gateOf } from '../traits.ts';
import { attemptsParameters } from './attempts-parameters.ts';
import {
  attemptExample,
  attemptSchema,
  attemptsSchema,
  replayedSchema,
  replaySchema,
} from './received-schemas.ts';
import type { ReceivingSetting } from './receiving-setting.ts';

const names = builtInNames.received;
const id = 'rec_01k1jx7v2mh5s8b4c9d0e6f3ga';

export function receivedPaths(setting: ReceivingSetting): readonly PathDescription[] {
  const { collection, base, limits, components } = setting;
  const { gate, mayBeMissing, mayBeHidden, mayBeClosed } = memberTraits(collection, 'update');
  const parameters = [pathParameter('id', 'Of the message.')];
  const path = `${base}/received`;
  return [
    ...collectionPaths(collection, names, base, limits, components, {
      idPrefix: 'rec_',
      operations: new Set(['list', 'query', 'read', 'patch']),
      revise: { list: (plain) => ({ ...plain, description: listNote }), patch: marking },
    }),
    {
      path: `${path}/replay`,
      name: 'Replay',
      noun: 'the replay of received messages',
      operations: [replayByQuery(setting)],
    },
    {
      path: `${path}/{id}/body`,
      name: 'ReceivedBody',
      noun: 'the body of a received message',
      parameters,
      operations: [bodyDescription(setting)],
    },
    {
      path: `${path}/{id}/attempts`,
      name: 'ReceivedAttempts',
      noun: 'the attempts to hand a message on',
      parameters,
      operations: [attemptsDescription(setting)],
    },
    {
      path: `${path}/{id}/replay`,
      name: 'ReceivedReplay',
      noun: 'the replay of a received message',
      parameters,
      operations: [
        actionDescription(
          {
            id: 'replayReceivedMessage',
            tag: collection.name,
            summary: 'Hand a message on again',
            description:
              'Whatever became of it before: it is pending, and due at once with the whole schedule before it. 409 where its body or its sender is gone.',
            takes: ['ReceivedReplay', { schema: nothing, example: {} }],
            contentOptional: true,
            queues: true,
            answer: ref('schemas', names.singular),
            traits: { gate, mayBeMissing, mayBeHidden, mayBeClosed },
            codes: ['content_unavailable', 'sender_unavailable'],
          },
          components,
        ),
      ],
    },
  ];
}

const listNote = 'In the order of receipt; `sort=-id` is the newest first, at the same cost.';
const nothing: Item = { type: 'object', properties: {}, additionalProperties: false };

/** `status` is all that there is to change. */
function marking(plain: Description): Description {
  const merge = { value: { status: 'processed' } };
  const json = { value: [{ op: 'replace', path: '/status', value: 'failed' }] };
  const examples: Readonly<Record<string, Item>> = {
    'application/merge-patch+json': { mark: merge },
    'application/json-patch+json': { mark: json },
    'application/json': { mark: merge },
  };
  const content = Object.entries(plain.requestContent ?? {}).map(
    ([type, item]) => [type, { ...item, examples: examples[type] ?? {} }] as const,
  );
  return {
    ...plain,
    summary: 'Mark a received message',
    description:
      '`status` becomes `processed` or `failed`, and the message is handed on no more; nothing else can be changed. A replay makes it pending again.',
    requestContent: Object.fromEntries(content),
  };
}

function bodyDescription({ collection }: ReceivingSetting): Description {
  return {
    id: 'readReceivedBody',
    tag: collection.name,
    summary: 'The octets that the sender posted',
    description:
      'As they came, with the Content-Type and the Content-Encoding that came with them. 404 when they are no longer kept.',
    traits: memberTraits(collection, 'read'),
    representationFields: ['Content-Disposition', 'Content-Security-Policy', 'X-Content-Type-Options'],
    content: { representation: { '*/*': {} } },
  };
}

function attemptsDescription({ collection, components, limits }: ReceivingSetting): Description {
  components.add('schemas', 'ReceivedAttempt', attemptSchema);
  const page = components.add('schemas', 'ReceivedAttempts', attemptsSchema);
  const example = { items: [attemptExample], nextCursor: null };
  return {
    id: 'listReceivedAttempts',
    tag: collection.name,
    summary: 'How handing a message on was tried, and what came of it',
    description: 'Oldest first.',
    traits: { ...memberTraits(collection, 'read'), proposalCodes: ['query_parameter_invalid'] },
    parameters: attemptsParameters(limits),
    content: { representation: { 'application/json': { schema: page, example } } },
  };
}

function replayByQuery({ collection, components, receivedReplayMax }: ReceivingSetting): Description {
  const described = actionDescription(
    {
      id: 'replayReceivedMessages',
      tag: collection.name,
      summary: 'Hand on again all messages that a filter finds',
      description: `In the order of receipt, at most ${receivedReplayMax} by one request. Where \`more\` is true, ask again with \`{"id": {"gt": lastId}}\` besides.`,
      takes: [
        'Replay',
        { schema: replaySchema, example: { filter: { sender: 'billing', status: 'failed' } } },
      ],
      answer: replayedSchema,
      answerExample: { dryRun: false, replayed: 42, skipped: 0, more: false, lastId: id },
      traits: { gate: gateOf([[collection.access.update, 'update']]) },
      codes: [],
    },
    components,
  );
  const { traits } = described;
  return {
    ...described,
    traits: { ...traits, proposalCodes: [...traits.proposalCodes, 'query_unprocessable'] },
  };
}

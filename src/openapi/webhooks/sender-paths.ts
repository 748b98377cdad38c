/** The senders as administrators see them, and the rotation of their secrets, as in resources/webhooks/senders. */
import { actionDescription } from '../accounts/action.ts';
import type { Components } from '../components.ts';
import { pagingParameters } from '../list-parameters.ts';
import type { Description } from '../operation.ts';
import type { PathDescription } from '../path-item.ts';
import { pathParameter } from '../path-parameter.ts';
import { gateOf, plainRead } from '../traits.ts';
import type { ReceivingSetting } from './receiving-setting.ts';
import { rotatedSchema, rotationSchema, senderExample, senderSchema } from './sender-schemas.ts';

const tag = 'senders';
const administrators = gateOf([['administrator', 'read']]);

export function senderPaths({
  base,
  components,
  limits,
  secretOverlapSecondsMax,
}: ReceivingSetting): readonly PathDescription[] {
  const schema = components.add('schemas', 'Sender', senderSchema);
  const list = components.add('schemas', 'Senders', {
    description: 'A page of the senders that are declared.',
    type: 'object',
    properties: { items: { type: 'array', items: schema }, nextCursor: { type: ['string', 'null'] } },
    required: ['items', 'nextCursor'],
  });
  const parameters = [pathParameter('name', 'Of the sender, as in its path.')];
  const traits = { ...plainRead, gate: administrators };
  return [
    {
      path: `${base}/senders`,
      name: 'Senders',
      noun: 'the senders',
      operations: [
        {
          id: 'listSenders',
          tag,
          summary: 'Whose webhooks are received',
          parameters: pagingParameters(limits, components),
          traits: { ...traits, proposalCodes: ['query_parameter_invalid'] },
          preferences: ['count=exact'],
          representationFields: ['Link', 'X-Total-Count'],
          content: {
            representation: {
              'application/json': { schema: list, example: { items: [senderExample], nextCursor: null } },
            },
          },
        },
      ],
    },
    {
      path: `${base}/senders/{name}`,
      name: 'Sender',
      noun: 'a sender',
      parameters,
      operations: [
        {
          id: 'readSender',
          tag,
          summary: 'Read a sender',
          traits: { ...traits, mayBeMissing: true },
          content: { representation: { 'application/json': { schema, example: senderExample } } },
        },
      ],
    },
    {
      path: `${base}/senders/{name}/rotate-secret`,
      name: 'SenderSecretRotation',
      noun: 'the rotation of a sender’s secret',
      parameters,
      operations: [rotation(secretOverlapSecondsMax, components)],
    },
  ];
}

function rotation(overlapSecondsMax: number, components: Components): Description {
  const takes = { schema: rotationSchema(overlapSecondsMax), example: { overlapSeconds: 3600 } };
  const secret = 'whsec_dGhlIGtleSBvZiBiaWxsaW5nLCB0aGlzIG9uY2U=';
  return actionDescription(
    {
      id: 'rotateSenderSecret',
      tag,
      summary: 'Give a sender a new secret',
      description:
        'Made here, or the one that the sender gave. The answer shows it, this once. 409 where a variable of the environment sets it.',
      takes: ['SenderSecretRotation', takes],
      contentOptional: true,
      answer: rotatedSchema,
      answerExample: { sender: 'billing', use: 'receive', secret },
      traits: { gate: administrators, mayBeMissing: true },
      codes: ['sender_secret_fixed'],
    },
    components,
  );
}

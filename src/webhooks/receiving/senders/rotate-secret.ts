/**
 * POST to `/senders/{name}/rotate-secret` (§5.6): sets a new secret, created here or given by the sender, and shows it
 * once. Older ones stay valid for `overlapSeconds`, so that the sender has time to change; without an overlap they are
 * invalid as soon as the response is sent. A secret that a variable of the environment sets is changed there.
 */
import { type Static, Type } from 'typebox';
import { refuseSenderSecret, secretCharactersMax } from '../../../config/senders/secret-rule.ts';
import type { DeclaredSender } from '../../../config/senders.ts';
import type { FieldError, Problem } from '../../../http/problem.ts';
import { actionResource, type Done } from '../../../kernel/action.ts';
import type { Resource } from '../../../kernel/resource.ts';
import { permission } from '../../../model/access.ts';
import type { SecretName } from '../sender-secrets.ts';
import { type SenderResourcesOptions, senderParameter, sendersTag } from './sender-route-options.ts';

const withoutControls = '^[^\\u0000-\\u001f\\u007f]+$';

function schemaOf(overlapSecondsMax: number) {
  return Type.Object({
    overlapSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: overlapSecondsMax,
        description: 'How long the secrets that it replaces are good beside it. 0 where it is left out.',
      }),
    ),
    secret: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: secretCharactersMax,
        pattern: withoutControls,
        description: 'One that the sender gave. Made by the server where it is left out.',
      }),
    ),
    use: Type.Optional(
      Type.Union([Type.Literal('receive'), Type.Literal('forward')], {
        description:
          '`receive`: what the sender signs with; `forward`: what its messages are forwarded with.',
      }),
    ),
  });
}

type Wanted = Static<ReturnType<typeof schemaOf>>;

const rotated = {
  schema: {
    type: 'object',
    properties: {
      sender: { type: 'string' },
      use: { enum: ['receive', 'forward'] },
      secret: { type: 'string' },
    },
    required: ['sender', 'use', 'secret'],
  },
  example: { sender: 'billing', use: 'receive', secret: 'whsec_dGhlIGtleSBvZiBiaWxsaW5nLCB0aGlzIG9uY2U=' },
};

/** @param path `/api/v1/senders/{name}/rotate-secret` */
export function rotateSenderSecretResource(options: SenderResourcesOptions, path: string): Resource {
  const { senders, secretOverlapSecondsMax } = options;
  return actionResource(
    {
      path,
      parameters: [senderParameter],
      tag: sendersTag,
      noun: 'the rotation of a sender’s secret',
      id: 'rotateSenderSecret',
      summary: 'Give a sender a new secret',
      description:
        'Made here, or the one that the sender gave. The answer shows it, this once. 409 where a variable of the environment sets it.',
      input: {
        name: 'SenderSecretRotation',
        schema: schemaOf(secretOverlapSecondsMax),
        example: { overlapSeconds: 3600 },
        optional: true,
      },
      output: rotated,
      codes: ['sender_secret_fixed'],
      permission: (principal) => permission('administrator', 'update', principal),
      standing: ({ captures: [name = ''] }) => {
        const exists = senders.has(name);
        return { exists, visible: exists, permitted: exists };
      },
      mayBeMissing: true,
      handler: async ({ captures: [name = ''] }, wanted) => {
        const sender = senders.get(name);
        if (sender === undefined) return { refused: { code: 'not_found' } };
        return rotate(options, sender, wanted);
      },
    },
    options.limits,
  );
}

async function rotate(
  { secrets, rotate: rotateSecret }: SenderResourcesOptions,
  sender: DeclaredSender,
  { overlapSeconds = 0, secret: given, use = 'receive' }: Wanted,
): Promise<Done> {
  const error = faultOf(sender, use, given);
  if (error !== undefined) return { refused: { code: 'validation_failed', errors: [error] } };
  const name = { sender: sender.name, use };
  if (secrets.source(name) === 'environment') return { refused: fixed(sender, use) };
  const how = { overlapMs: overlapSeconds * 1000, ...(given === undefined ? {} : { secret: given }) };
  const { secret } = await rotateSecret(name, how);
  await secrets.refresh();
  return { content: { sender: sender.name, use, secret } };
}

function faultOf(
  sender: DeclaredSender,
  use: SecretName['use'],
  secret: string | undefined,
): FieldError | undefined {
  if (use === 'forward' && sender.handOn.kind !== 'forward') {
    return { pointer: '/use', message: `must be receive: messages of ${sender.name} are not forwarded` };
  }
  const message = secret === undefined ? undefined : refuseSenderSecret(sender, use, secret);
  return message === undefined ? undefined : { pointer: '/secret', message };
}

function fixed({ secretVariable, handOn }: DeclaredSender, use: SecretName['use']): Problem {
  const variable = use === 'forward' && handOn.kind === 'forward' ? handOn.secretVariable : secretVariable;
  return {
    code: 'sender_secret_fixed',
    message: `the secrets of this sender are set by ${variable}; set it to the new and the old one with a comma between`,
  };
}

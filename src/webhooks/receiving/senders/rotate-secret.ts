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
        description: 'Seconds for which the replaced secrets stay valid beside the new one. Default: 0.',
      }),
    ),
    secret: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: secretCharactersMax,
        pattern: withoutControls,
        description: 'The secret that the sender assigned. By default the server creates one.',
      }),
    ),
    use: Type.Optional(
      Type.Union([Type.Literal('receive'), Type.Literal('forward')], {
        description:
          '`receive`: the secret that the sender signs with; `forward`: the secret that signs forwarded messages.',
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
      noun: 'the rotation of a secret of a sender',
      id: 'rotateSenderSecret',
      summary: 'Rotate a secret of a sender',
      description:
        'Creates a secret, or stores the one that the sender assigned. Only this response shows it. 409 if an environment variable sets the secret.',
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
    message: `the environment variable ${variable} sets the secrets of this sender; set it to the new and the old secret, separated by a comma`,
  };
}

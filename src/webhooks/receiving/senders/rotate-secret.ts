/**
 * POST to `/senders/{name}/rotate-secret` (§5.6): sets a new secret, created here or given by the sender, and shows it
 * once. Older ones stay valid for `overlapSeconds`, so that the sender has time to change; without an overlap they are
 * invalid as soon as the response is sent. A secret that a variable of the environment sets is changed there.
 */
import { type Static, Type } from 'typebox';
import type { Configuration } from '../../../config/configuration.ts';
import { refuseSenderSecret, secretCharactersMax } from '../../../config/senders/secret-rule.ts';
import type { DeclaredSender } from '../../../config/senders.ts';
import type { FieldError, Problem } from '../../../http/problem.ts';
import { actionResource, type Done } from '../../../kernel/action.ts';
import { pathParameter, type Tag } from '../../../kernel/documentation.ts';
import type { Resource } from '../../../kernel/resource.ts';
import { permission } from '../../../model/access.ts';
import type { Services } from '../../../store/capabilities.ts';
import type { SecretName, SenderSecrets } from '../sender-secrets.ts';

export const sendersTag: Tag = { name: 'senders', description: 'The declared senders of webhooks.' };
export const senderParameter = pathParameter('name', 'Name of the sender, as in its path.');

/** The secrets of senders as their resources use them. */
export type KnownSecrets = Pick<SenderSecrets, 'of' | 'source' | 'refresh' | 'rotate'>;

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

export function rotateSenderSecretResource(
  { settings }: Services,
  { base, senders }: Pick<Configuration, 'base' | 'senders'>,
  secrets: KnownSecrets,
): Resource {
  return actionResource(
    {
      path: `${base}/senders/{name}/rotate-secret`,
      parameters: [senderParameter],
      tag: sendersTag,
      noun: 'the rotation of a secret of a sender',
      id: 'rotateSenderSecret',
      summary: 'Rotate a secret of a sender',
      description:
        'Creates a secret, or stores the one that the sender assigned. Only this response shows it. 409 if an environment variable sets the secret.',
      input: {
        name: 'SenderSecretRotation',
        schema: schemaOf(settings.secretOverlapSecondsMax),
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
        return rotate(secrets, sender, wanted);
      },
    },
    settings,
  );
}

async function rotate(
  secrets: KnownSecrets,
  sender: DeclaredSender,
  { overlapSeconds = 0, secret: given, use = 'receive' }: Wanted,
): Promise<Done> {
  const error = faultOf(sender, use, given);
  if (error !== undefined) return { refused: { code: 'validation_failed', errors: [error] } };
  const name = { sender: sender.name, use };
  if (secrets.source(name) === 'environment') return { refused: fixed(sender, use) };
  const how = { overlapMs: overlapSeconds * 1000, ...(given === undefined ? {} : { secret: given }) };
  const { secret } = await secrets.rotate(name, how);
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

/**
 * POST to `/senders/{name}/rotate-secret` (§5.6): a new secret, made here or given by the sender, and shown this once. The others are taken
 * beside it for `overlapSeconds`, so that the sender has time to change over; without an overlap they are over when the answer is there.
 *
 * A secret that a variable of the environment sets is changed there.
 */
import { Type } from 'typebox';
import { refuseSenderSecret, secretCharactersMax } from '../../../config/senders/secret-rule.ts';
import type { DeclaredSender } from '../../../config/senders.ts';
import type { FieldError, Problem } from '../../../http/problem.ts';
import { permission } from '../../../model/access.ts';
import type { SecretName } from '../../../webhooks/inbound/sender-secrets.ts';
import { actionResource, type Done } from '../../action/action.ts';
import type { Resource } from '../../resource.ts';
import type { SenderResourcesOptions } from './options.ts';

const withoutControls = '^[^\\u0000-\\u001f\\u007f]+$';

type Wanted = {
  readonly overlapSeconds?: number;
  readonly secret?: string;
  readonly use?: SecretName['use'];
};

/** @param path `/api/v1/senders/{name}/rotate-secret` */
export function rotateSenderSecretResource(options: SenderResourcesOptions, path: string): Resource {
  const { senders, limits, secretOverlapSecondsMax } = options;
  const schema = Type.Object({
    overlapSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: secretOverlapSecondsMax })),
    secret: Type.Optional(
      Type.String({ minLength: 1, maxLength: secretCharactersMax, pattern: withoutControls }),
    ),
    use: Type.Optional(Type.Union([Type.Literal('receive'), Type.Literal('forward')])),
  });
  return actionResource({
    path,
    schema,
    contentOptional: true,
    limits,
    permission: (principal) => permission('administrator', 'update', principal),
    standing: ({ captures: [name = ''] }) => {
      const exists = senders.has(name);
      return { exists, visible: exists, permitted: exists };
    },
    act: async ({ captures: [name = ''] }, content) => {
      const sender = senders.get(name);
      if (sender === undefined) return { refused: { code: 'not_found' } };
      return rotate(options, sender, content as Wanted);
    },
  });
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

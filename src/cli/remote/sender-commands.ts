/** `comity senders`. The secrets of a sender are never shown again. */
import { fixedBounds } from '../../config/settings.ts';
import type { ShownSecrets, ShownSender } from '../../webhooks/receiving/senders/sender-routes.ts';
import type { Argument } from '../declare-command.ts';
import { wholeNumber } from '../option-values.ts';
import { columns, lines, printable } from '../table.ts';
import type { Call, Noun, Printed } from './remote-command.ts';

const senderName: Argument = ['<name>', 'name of the sender, as in its path'];

const senderText = lines<ShownSender>({
  name: 'name',
  description: ({ description }) => description || undefined,
  path: 'path',
  preset: 'preset',
  signature: signatureText,
  secrets: secretsText,
  'handed on': ({ handOn }) =>
    handOn.kind === 'forward' ? `forwarded to ${handOn.url} as ${handOn.scheme}` : handOn.kind,
  'its secrets': ({ handOn }) => (handOn.kind === 'forward' ? secretsText(handOn) : undefined),
  retries: ({ handOn, schedule }) => (handOn.kind === 'inbox' ? undefined : `after ${schedule.join(', ')} s`),
  'in flight': ({ inFlightMax }) => (inFlightMax === null ? undefined : `at most ${inFlightMax}`),
});

export const senders: Noun = {
  name: 'senders',
  description: 'list the senders whose webhooks a running server receives, and change their secrets',
  key: 'administrator',
  thing: 'sender',
  commands: [
    {
      name: 'list',
      isDefault: true,
      description: 'list the declared senders',
      request: 'GET /senders',
      lists: 'all',
      table: columns<ShownSender>({
        NAME: 'name',
        PRESET: 'preset',
        'HANDED ON': ({ handOn }) => handOn.kind,
        'SECRETS FROM': 'secretSource',
        SECRETS: 'secretCount',
        PATH: 'path',
      }),
      none: 'No senders are declared.',
    },
    {
      name: 'show',
      description: 'show one sender; no secret is shown again',
      arguments: [senderName],
      request: 'GET /senders/{name}',
      print: senderText,
    },
    {
      name: 'rotate-secret',
      description: 'replace the secret, and print the new one once',
      arguments: [senderName],
      options: [
        [
          '--overlap-seconds <seconds>',
          'how long the old secret is also accepted (0)',
          // The most that any server accepts.
          { member: 'overlapSeconds', parse: wholeNumber(0, fixedBounds.secretOverlapSecondsMax.value) },
        ],
        ['--secret-from-stdin', 'take the secret that the sender gave you from the first line of stdin'],
        [
          '--use <use>',
          'for received or for forwarded messages (receive)',
          { member: 'use', choices: ['receive', 'forward'] },
        ],
      ],
      help: '\nA secret that an environment variable sets must be changed there.',
      request: 'POST /senders/{name}/rotate-secret',
      content: givenSecret,
      print: newSecret,
    },
  ],
};

function signatureText({ signature }: ShownSender): string {
  if (signature.kind === 'token') return `a token in ${signature.header}`;
  const { header, hash, encoding, toleranceSeconds } = signature;
  const window = toleranceSeconds === 0 ? '' : `, at most ${toleranceSeconds} s old`;
  return `HMAC ${hash} in ${header} as ${encoding}${window}`;
}

function secretsText({ secretSource, secretVariable, secretCount, oldSecretsUntil }: ShownSecrets): string {
  const from =
    secretSource === 'environment' ? `from ${secretVariable}` : `kept here, ${secretVariable} is not set`;
  const until = oldSecretsUntil === null ? '' : `; the last of the old ones until ${oldSecretsUntil}`;
  return `${secretCount} ${from}${until}`;
}

type RotateArguments = { readonly secretFromStdin?: boolean };

/** Every user of a machine can read command lines, so the secret that the sender gave comes from stdin. */
async function givenSecret({ terminal, options }: Call<RotateArguments>): Promise<object> {
  if (options.secretFromStdin !== true) return {};
  const { stdinLine } = await import('../confirm.ts');
  const atTerminal = '--secret-from-stdin reads a pipe; without it the server makes a secret';
  return { secret: await stdinLine(terminal.stdin, 'secret', atTerminal) };
}

type RotatedSecret = { readonly sender: string; readonly use: string; readonly secret: string };

function newSecret(rotated: RotatedSecret, { options }: Call<RotateArguments>): Partial<Printed> {
  const sender = printable(rotated.sender);
  if (options.secretFromStdin === true)
    return { notes: [`${sender}: the given secret is valid from now on`] };
  const whom = rotated.use === 'forward' ? 'the receiver of its forwarded messages' : 'the sender';
  return {
    text: rotated.secret,
    notes: [`${sender}: the secret is shown only once; give it to ${whom} now`],
  };
}

/** `comity received`: received webhooks, their bodies, and their replay. `comity senders`: their senders, whose secrets are never shown again. */
import { fixedBounds } from '../../config/settings.ts';
import { type Received, receivedStatuses } from '../../model/received.ts';
import type { PutBack } from '../../webhooks/receiving/received/replay-by-query.ts';
import type { ReceivedAttempt } from '../../webhooks/receiving/received-tables.ts';
import type { ShownSecrets, ShownSender } from '../../webhooks/receiving/sender-routes.ts';
import { usesSecrets } from '../../webhooks/signature/signature-rule.ts';
import { type Argument, type OptionRow, yesOption } from '../declare-command.ts';
import { exitCodes, usageFailure } from '../failure.ts';
import { pastTime, wholeNumber } from '../option-values.ts';
import type { ServerClient } from '../server-client.ts';
import { columns, lines, onOneLine, printable } from '../table.ts';
import { type Terminal, writeOctets } from '../terminal.ts';
import type { Call, Noun, Printed } from './run-remote.ts';

const messageId: Argument = ['<id>', 'id of the message, rec_...'];

/** Options that select messages. */
const choice: readonly OptionRow[] = [
  ['--sender <name>', 'only those of one sender', { member: 'sender' }],
  ['--status <status>', 'only those in one state', { member: 'status', choices: receivedStatuses }],
  ['--type <type>', 'only those of one type, as named by their sender', { member: 'type' }],
  [
    '--since <time>',
    'only those received since: 2h or 7d ago, or an ISO 8601 time',
    { member: 'receivedAt[gte]', parse: (text) => pastTime('--since', text) },
  ],
];

const attemptsText = columns<ReceivedAttempt>({
  AT: 'at',
  TRIGGER: 'trigger',
  OUTCOME: ({ statusCode, error, outcome }) => statusCode ?? error ?? outcome,
  TOOK: ({ durationMs }) => `${Math.round(durationMs)} ms`,
  MESSAGE: ({ message }) => onOneLine(message ?? ''),
});

export const received: Noun = {
  name: 'received',
  description: 'list received webhooks, and hand them on again',
  key: 'administrator',
  thing: 'received message',
  commands: [
    {
      name: 'list',
      description: 'list received messages, the newest first',
      options: choice,
      request: 'GET /received',
      lists: 'newest',
      table: columns<Received>({
        ID: 'id',
        SENDER: 'sender',
        TYPE: 'type',
        STATUS: 'status',
        ATTEMPTS: 'attempts',
        'LAST ERROR': 'lastError',
        DUE: 'dueAt',
        RECEIVED: 'receivedAt',
      }),
      none: 'No received messages.',
    },
    {
      name: 'show',
      description: 'show one message with the attempts to hand it on',
      arguments: [messageId],
      request: 'GET /received/{id}',
      print: withAttempts,
    },
    {
      name: 'body',
      description: 'write the content to stdout, as received; --json writes it as base64',
      arguments: [messageId],
      finds: 'GET /received/{id}',
      run: writeBody,
    },
    {
      name: 'attempts',
      description: 'list the attempts to hand one message on, the oldest first',
      arguments: [messageId],
      // Distinguishes a missing message from one without attempts.
      finds: 'GET /received/{id}',
      request: 'GET /received/{id}/attempts',
      lists: 'all',
      table: attemptsText,
      none: 'No attempts.',
    },
    {
      name: 'replay',
      description: 'hand messages on again, by id, or all that the options select',
      arguments: [['[id...]', 'ids of the messages, rec_...']],
      options: [...choice, ['--dry-run', 'only count'], yesOption],
      help:
        '\nMessages that arrive after the command began are left out. Exits 1 if a named message was refused.' +
        '\nTheir handler gets the messages once more.',
      run: replayReceived,
    },
    {
      name: 'mark',
      description: 'set the status of a message; it is no longer handed on',
      arguments: [messageId],
      options: [
        [
          '--as <status>',
          'its new status',
          {
            member: 'status',
            choices: receivedStatuses.filter((status) => status !== 'pending'),
            isRequired: true,
          },
        ],
      ],
      request: 'PATCH /received/{id}',
      print: ({ id, status }: Received) => `${id} is ${status}.`,
    },
  ],
};

const receivedLines = lines<Received>({
  id: 'id',
  sender: 'sender',
  key: 'dedupeKey',
  type: 'type',
  status: ({ status, lastError }) => (lastError === null ? status : `${status} (${lastError})`),
  attempts: 'attempts',
  due: 'dueAt',
  content: ({ contentLength, contentType }) => `${contentLength} octets of ${contentType ?? 'no type'}`,
  received: 'receivedAt',
  changed: 'updatedAt',
});

/** A message has some dozens. */
const attemptsMax = 1000;

async function withAttempts(message: Received, { server }: Call): Promise<Printed> {
  const path = `${pathOf(message.id)}/attempts`;
  const { items } = await server().list<ReceivedAttempt>(path, attemptsMax);
  const text = receivedLines(message);
  return {
    json: { ...message, attemptLog: items },
    text: items.length === 0 ? text : `${text}\n\n${attemptsText(items)}`,
  };
}

function pathOf(id: string): string {
  return `/received/${encodeURIComponent(id)}`;
}

/** The octets of one message on stdout, as its sender signed them. */
async function writeBody({
  terminal,
  server,
  found: { id, contentType },
  json,
}: Call<object, Received>): Promise<Printed | number> {
  const send = (take: (chunk: Uint8Array) => Promise<void>): Promise<void> =>
    server().octets(`${pathOf(id)}/body`, `body of ${id} any more`, take);
  if (!json) {
    await writeOctets(terminal.stdout, send);
    return exitCodes.done;
  }
  const chunks: Uint8Array[] = [];
  await send(async (chunk) => void chunks.push(chunk));
  return { json: { id, contentType, body: Buffer.concat(chunks).toString('base64') } };
}

type ReplayArguments = { readonly dryRun?: boolean };

/** The filter of a JSON QUERY (§4.9). */
type Filter = Readonly<Record<string, unknown>>;

/** Messages per request: some tenths of a second of the server's time. The server may have a lower bound. */
const pieceMessagesMax = 1000;

/**
 * Hands on again the messages that are named, or all that the options select. The latter takes one request for each piece, each beginning
 * after the last message of the one before, so that progress can be shown; messages that arrive meanwhile are excluded.
 */
async function replayReceived(call: Call<ReplayArguments>): Promise<Printed | number> {
  const { terminal, names, options } = call;
  const { 'receivedAt[gte]': since, ...equal } = call.members;
  const chosen = { ...equal, receivedAt: since === undefined ? undefined : { gte: since } };
  const chooses = Object.values(chosen).some((value) => value !== undefined);
  if (names.length > 0 && (chooses || options.dryRun === true))
    throw usageFailure('name messages by their ids, or select them by options, not both');
  const server = call.server();
  if (names.length > 0)
    return call.changeEach('is handed on again.', (id) =>
      server.ask('POST', `${pathOf(id)}/replay`, { json: {}, subject: `received message ${id}` }),
    );
  if (!chooses)
    throw usageFailure(
      'name the messages by their ids, or select them by --sender, --status, --type or --since',
    );
  const filter = { and: [chosen, await upToNow(server)] };
  const found = await replay(server, { filter, dryRun: true });
  const count = `${found.replayed}${found.more ? ' or more' : ''}`;
  if (options.dryRun === true)
    return {
      json: { replayed: found.replayed, skipped: 0, dryRun: true },
      text: `${count} messages would be handed on again.`,
    };
  if (found.replayed > 0 && !(await call.isConfirmed(`Hand ${count} messages on again?`))) {
    terminal.err('comity: nothing was replayed');
    return exitCodes.failed;
  }
  const { replayed, skipped } = await inPieces(terminal, server, filter, count);
  const others = skipped === 0 ? '' : `; ${skipped} could not be, because their bodies or senders are gone`;
  return {
    json: { replayed, skipped, dryRun: false },
    text: `${replayed} messages are handed on again${others}.`,
  };
}

/** Excludes messages that arrive while the command runs. */
async function upToNow(server: ServerClient): Promise<Filter> {
  const { items } = await server.list<Received>('/received?sort=-id', 1);
  return items[0] === undefined ? {} : { id: { lte: items[0].id } };
}

async function inPieces(terminal: Terminal, server: ServerClient, filter: Filter, count: string) {
  const { showStatusLine } = await import('../terminal.ts');
  const line = showStatusLine(terminal.stderr);
  let [replayed, skipped] = [0, 0];
  let after: string | null = null;
  try {
    for (;;) {
      const rest: Filter = after === null ? filter : { and: [filter, { id: { gt: after } }] };
      const piece = await replay(server, { filter: rest, limit: pieceMessagesMax });
      replayed += piece.replayed;
      skipped += piece.skipped;
      line.show(`comity: ${replayed} of ${count} messages`);
      if (!piece.more || piece.lastId === null) return { replayed, skipped };
      after = piece.lastId;
    }
  } finally {
    line.end();
  }
}

async function replay(server: ServerClient, json: object): Promise<PutBack> {
  return (await server.ask('POST', '/received/replay', { json })) as PutBack;
}

const senderName: Argument = ['<name>', 'name of the sender, as in its path'];

const senderText = lines<ShownSender>({
  name: 'name',
  description: ({ description }) => description || undefined,
  path: 'path',
  preset: 'preset',
  signature: signatureText,
  secrets: (sender) =>
    usesSecrets(sender.signature)
      ? secretsText(sender)
      : 'none: it signs by a key pair, whose public keys are known',
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
  if (signature.kind === 'function') return 'the function verify of the configuration';
  if (signature.kind === 'token') return `a token in ${signature.header}`;
  const { kind, header, hash, algorithm, encoding, toleranceSeconds } = signature;
  const window = toleranceSeconds === 0 ? '' : `, at most ${toleranceSeconds} s old`;
  if (kind === 'jwt') return `a JWT in ${header}, signed by ${algorithm}${window}`;
  return `${hash === undefined ? kind : `HMAC ${hash}`} in ${header} as ${encoding}${window}`;
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
  const { stdinLine } = await import('../terminal.ts');
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

/** The output of a server: `comity deliveries` with their attempts, `comity events` (posted with a given object or a sample), and `comity mails`. */
import { isRecord } from '../../config/inspection.ts';
import { type Delivery, deliveryStatuses } from '../../model/delivery.ts';
import { type KeptMail, mailStatuses } from '../../model/kept-mail.ts';
import type { EventType } from '../../webhooks/sending/event-types/event-types.ts';
import type { Attempt } from '../../webhooks/sending/settle-delivery.ts';
import { CommandFailure, usageFailure } from '../failure.ts';
import type { ServerClient } from '../server-client.ts';
import { columns, lines, onOneLine } from '../table.ts';
import type { Call, Noun, Printed } from './run-remote.ts';

export const deliveries: Noun = {
  name: 'deliveries',
  description: 'list the deliveries of webhooks, and resend them',
  key: 'webhooks',
  thing: 'delivery',
  commands: [
    {
      name: 'list',
      description: 'list deliveries, the newest first',
      options: [
        ['--endpoint <id>', 'only those to one endpoint, ep_...', { member: 'endpointId' }],
        ['--status <status>', 'only those in one state', { member: 'status', choices: deliveryStatuses }],
        ['--event <id>', 'only those of one event, evt_...', { member: 'eventId' }],
        [
          '--type <type>',
          'only those of one type of event, such as products.created',
          { member: 'eventType' },
        ],
      ],
      request: 'GET /deliveries',
      lists: 'newest',
      table: columns<Delivery>({
        ID: 'id',
        'EVENT TYPE': 'eventType',
        ENDPOINT: 'endpointId',
        STATUS: 'status',
        ATTEMPTS: 'attemptCount',
        LAST: ({ lastStatusCode, lastError }) => lastStatusCode ?? lastError,
        'NEXT ATTEMPT': 'nextAttemptAt',
        CREATED: 'createdAt',
      }),
      none: 'No deliveries.',
    },
    {
      name: 'show',
      description: 'show one delivery with its attempts',
      arguments: [['<id>', 'id of the delivery, dlv_...']],
      request: 'GET /deliveries/{id}',
      print: (delivery: Delivery, { server }: Call) => withAttempts(server(), delivery),
    },
    {
      name: 'resend',
      description: 'retry deliveries at once, whatever their status; scheduled attempts stay',
      arguments: [['<id...>', 'ids of the deliveries, dlv_...']],
      help: '\nWorks for 30 days after a delivery was created. Exits 1 if one of them was refused.',
      request: 'POST /deliveries/{id}/resend',
      // The command line may resend for 30 days, other clients for 15 (§6).
      content: { via: 'command-line' },
      each: 'is resent.',
    },
  ],
};

/** A delivery has some dozens. */
const attemptsMax = 1000;

const deliveryLines = lines<Delivery>({
  id: 'id',
  event: ({ eventId, eventType }) => `${eventId} (${eventType})`,
  endpoint: 'endpointId',
  status: 'status',
  attempts: 'attemptCount',
  due: ({ dueAt, nextAttemptAt }) => (dueAt === nextAttemptAt ? null : dueAt),
  next: 'nextAttemptAt',
  created: 'createdAt',
  changed: 'updatedAt',
});

const attemptsText = columns<Attempt>({
  AT: 'at',
  TRIGGER: 'trigger',
  OUTCOME: ({ statusCode, error }) => statusCode ?? error,
  TOOK: ({ latencyMs }) => `${Math.round(latencyMs)} ms`,
  ANSWER: ({ statusCode, message, responseSnippet }) =>
    onOneLine(statusCode === null ? (message ?? '') : responseSnippet),
});

/** @param server undefined: none were made yet */
export async function withAttempts(server: ServerClient | undefined, delivery: Delivery): Promise<Printed> {
  const path = `/deliveries/${encodeURIComponent(delivery.id)}/attempts`;
  const attempts = (await server?.list<Attempt>(path, attemptsMax))?.items ?? [];
  const text = deliveryLines(delivery);
  return {
    json: { ...delivery, attempts },
    text: attempts.length === 0 ? text : `${text}\n\n${attemptsText(attempts)}`,
  };
}

export const events: Noun = {
  name: 'events',
  description: 'post events to a running server, and list the types of events',
  key: 'webhooks',
  commands: [
    {
      name: 'types',
      description: 'list the types of events; --json shows their schemas and samples',
      request: 'GET /event-types',
      lists: 'all',
      table: columns<ShownEventType>({ TYPE: 'type', DESCRIPTION: 'description' }),
    },
    {
      name: 'trigger',
      description: 'post an event, and print its id',
      arguments: [['<type>', 'its type, such as products.created or invoice.paid']],
      options: [
        ['--data <json>', 'its object: JSON, @file, or - for stdin (a sample)'],
        [
          '--set <path=value>',
          'set a member of the object, such as price=10; repeatable',
          { parse: (written, before: readonly string[] = []) => [...before, written] },
        ],
        ['--id <id>', 'its id; a repeated one is the same event', { member: 'id' }],
        ['--tenant <tenant>', 'its tenant', { member: 'tenant' }],
      ],
      run: triggerEvent,
    },
  ],
};

/** `sample` is a whole event. */
type ShownEventType = Pick<EventType, 'type' | 'description'> & {
  readonly sample: { readonly data?: { readonly object?: unknown } } | null;
};

type Members = Readonly<Record<string, unknown>>;

type TriggerArguments = { readonly data?: string; readonly set?: readonly string[] };

async function triggerEvent({
  terminal,
  server,
  names: [type = ''],
  options: { data, set = [] },
  members,
}: Call<TriggerArguments>): Promise<Printed> {
  const { readObject } = await import('../option-values.ts');
  const given = data === undefined ? undefined : await readObject(terminal, '--data', data);
  const object = set.reduce(withMember, given ?? (await sampleOf(server(), type)));
  const json = await server().ask('POST', '/events', { json: { ...members, type, data: { object } } });
  return { json, text: (json as { readonly id: string }).id };
}

async function sampleOf(server: ServerClient, type: string): Promise<Members> {
  const subject = `sample of ${type}; --data sets the object of the event`;
  const path = `/event-types/${encodeURIComponent(type)}`;
  const { sample } = (await server.ask('GET', path, { subject })) as ShownEventType;
  const object = sample?.data?.object;
  if (isRecord(object)) return object;
  throw new CommandFailure(`there is no ${subject}`);
}

/**
 * Replaces one member of the object, at any depth: `--set path=value`.
 * @param written `price=10`, `customer.name=Ada`; the value is JSON if it parses, else text
 * @returns a copy with the member
 */
export function withMember(object: Members, written: string): Members {
  const equals = written.indexOf('=');
  const names = written.slice(0, Math.max(0, equals)).split('.');
  if (equals < 1 || names.some((name) => name === '')) {
    throw usageFailure(`--set must be like price=10 or customer.name=Ada, not ${JSON.stringify(written)}`);
  }
  return put(object, names, valueIn(written.slice(equals + 1)));
}

function put(object: Members, [name = '', ...rest]: readonly string[], value: unknown): Members {
  const inner = Object.hasOwn(object, name) ? object[name] : undefined;
  const next = rest.length === 0 ? value : put(isRecord(inner) ? inner : {}, rest, value);
  // Entries, because a member may be called "__proto__".
  return Object.fromEntries([...Object.entries(object).filter(([key]) => key !== name), [name, next]]);
}

function valueIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Keeps a mail on its line of the terminal; `--json` shows all. */
const subjectCharactersMax = 40;

export const mails: Noun = {
  name: 'mails',
  description: 'list mails, and send failed ones again',
  key: 'administrator',
  thing: 'mail',
  commands: [
    {
      name: 'list',
      description: 'list mails, the newest first',
      options: [
        ['--status <status>', 'only those in one state', { member: 'status', choices: mailStatuses }],
        ['--template <name>', 'only those of one template', { member: 'template' }],
      ],
      request: 'GET /mails',
      lists: 'newest',
      table: columns<KeptMail>({
        ID: 'id',
        TO: ({ to: [first = '', ...others] }) =>
          others.length === 0 ? first : `${first} and ${others.length} more`,
        SUBJECT: ({ subject }) => subject.slice(0, subjectCharactersMax),
        STATUS: 'status',
        ATTEMPTS: 'attempts',
        'LAST ERROR': 'lastError',
        DUE: 'dueAt',
        CREATED: 'createdAt',
      }),
      none: 'No mails.',
    },
    {
      name: 'show',
      description: 'show one mail with the result for each recipient',
      arguments: [['<id>', 'id of the mail, mail_...']],
      request: 'GET /mails/{id}',
      print: lines<KeptMail>({
        id: 'id',
        to: 'to',
        cc: ({ cc }) => cc.join(', ') || undefined,
        bcc: ({ bcc }) => bcc.join(', ') || undefined,
        accepted: 'accepted',
        refused: 'refused',
        subject: 'subject',
        template: 'template',
        status: ({ status, lastError }) => (lastError === null ? status : `${status} (${lastError})`),
        attempts: 'attempts',
        due: 'dueAt',
        sent: 'sentAt',
        created: 'createdAt',
      }),
    },
    {
      name: 'resend',
      description: 'send mails again at once, to the recipients that have not accepted them',
      arguments: [['<id...>', 'ids of the mails, mail_...']],
      help: '\nExits 1 if one of them was refused: the content of a sent mail is not kept.',
      request: 'POST /mails/{id}/resend',
      content: {},
      each: 'is sent again.',
    },
  ],
};

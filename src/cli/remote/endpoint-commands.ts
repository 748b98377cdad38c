/** `comity endpoints`. The secret of an existing endpoint is never shown again. */
import { setTimeout as delay } from 'node:timers/promises';
import { fixedBounds } from '../../config/settings.ts';
import type { Delivery } from '../../model/delivery.ts';
import { type Endpoint, modes, schemes } from '../../model/endpoint.ts';
import type { Recovery } from '../../webhooks/sending/recovery/recovery.ts';
import type { Argument } from '../declare-command.ts';
import { CommandFailure, usageFailure } from '../failure.ts';
import { commaList, pastTime, wholeNumber } from '../option-values.ts';
import type { ServerClient } from '../server-client.ts';
import { columns, lines, printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { withAttempts } from './outgoing-commands.ts';
import type { Call, Noun, Printed } from './run-remote.ts';

const endpointId: Argument = ['<id>', 'id of the endpoint, ep_...'];

/** The server has its own bounds. */
const rateMax = 100_000;
const inFlightMax = 1024;

const endpointText = lines<Endpoint>({
  id: 'id',
  url: 'url',
  description: 'description',
  events: 'events',
  scheme: ({ scheme, mode }) => (mode === undefined ? scheme : `${scheme}, ${mode}`),
  signatures: 'signatures',
  status: stateOf,
  tenant: 'tenant',
  header: ({ headers = {} }) => Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  'in flight': ({ maxInFlight }) => (maxInFlight === undefined ? undefined : `at most ${maxInFlight}`),
  rate: ({ ratePerSecond: rate }) => (rate === undefined ? undefined : `at most ${rate}/s`),
  created: 'createdAt',
  changed: 'updatedAt',
});

export const endpoints: Noun = {
  name: 'endpoints',
  description: 'manage the endpoints that a running server sends webhooks to',
  key: 'webhooks',
  thing: 'endpoint',
  commands: [
    {
      name: 'list',
      description: 'list endpoints, the newest first',
      request: 'GET /endpoints',
      lists: 'newest',
      table: columns<Endpoint>({
        ID: 'id',
        STATUS: stateOf,
        SCHEME: 'scheme',
        TENANT: 'tenant',
        EVENTS: 'events',
        URL: 'url',
      }),
      none: 'No endpoints.',
    },
    {
      name: 'show',
      description: 'show one endpoint',
      arguments: [endpointId],
      request: 'GET /endpoints/{id}',
      print: endpointText,
    },
    {
      name: 'create',
      description: 'create an endpoint, and print its secret once',
      options: [
        ['--to <url>', 'where events are sent', { member: 'url', isRequired: true }],
        [
          '--events <patterns>',
          'which events: products.created, products.* ... (*)',
          { member: 'events', parse: commaList },
        ],
        ['--scheme <scheme>', 'how they are signed (standard)', { member: 'scheme', choices: schemes }],
        [
          '--mode <mode>',
          'with --scheme timestamped: how long deliveries are retried',
          { member: 'mode', choices: modes },
        ],
        [
          '--signatures <versions>',
          'with --scheme standard: v1, or v1,v1a (v1,v1a)',
          { member: 'signatures', parse: commaList },
        ],
        ['--tenant <tenant>', 'only events of this tenant', { member: 'tenant' }],
        ['--description <text>', 'what it is for', { member: 'description' }],
        [
          '--header <field...>',
          'sent with every delivery, as "Name: value"',
          { member: 'headers', parse: withHeader },
        ],
        [
          '--max-in-flight <number>',
          'attempts at the same time, at most',
          { member: 'maxInFlight', parse: wholeNumber(1, inFlightMax) },
        ],
        [
          '--rate <number>',
          'attempts per second, at most',
          { member: 'ratePerSecond', parse: wholeNumber(1, rateMax) },
        ],
      ],
      request: 'POST /endpoints',
      content: ({ options: { events = ['*'] } }: Call<{ readonly events?: readonly string[] }>) => ({
        events,
      }),
      print: newSecret,
    },
    {
      name: 'rotate-secret',
      description: 'replace the secret, and print the new one once',
      arguments: [endpointId],
      options: [
        [
          '--overlap <seconds>',
          'how long the old secret also signs (0)',
          // The most that any server accepts.
          { member: 'overlapSeconds', parse: wholeNumber(0, fixedBounds.secretOverlapSecondsMax.value) },
        ],
      ],
      request: 'POST /endpoints/{id}/rotate-secret',
      print: newSecret,
    },
    {
      name: 'enable',
      description: 'send again, waiting deliveries first',
      arguments: [endpointId],
      request: 'PATCH /endpoints/{id}',
      content: { status: 'enabled' },
      print: endpointText,
    },
    {
      name: 'disable',
      description: 'send nothing until it is enabled; deliveries wait',
      arguments: [endpointId],
      request: 'PATCH /endpoints/{id}',
      content: { status: 'disabled' },
      print: endpointText,
    },
    {
      name: 'delete',
      description: 'remove an endpoint; its deliveries stay in the log',
      arguments: [endpointId],
      finds: 'GET /endpoints/{id}',
      confirms: (endpoint: Endpoint) => `Delete ${shown(endpoint)}?`,
      done: 'deleted',
      request: 'DELETE /endpoints/{id}',
      print: (_, { found }: Call<object, Endpoint>) => ({
        json: { id: found.id, url: found.url, deleted: true },
        isLine: true,
        text: `${shown(found)} was deleted.`,
      }),
    },
    {
      name: 'test',
      description: 'send one event to one endpoint, and show its response',
      arguments: [endpointId],
      options: [
        ['--type <type>', 'a sample of this type (endpoint.test)', { member: 'type' }],
        ['--no-wait', 'do not wait for the response'],
      ],
      help: '\nExits 1 if the endpoint did not accept it.',
      request: 'POST /endpoints/{id}/test',
      print: awaitTest,
    },
    {
      name: 'recover',
      description: 'resend what an endpoint missed',
      arguments: [endpointId],
      options: [
        [
          '--since <time>',
          'start: 2h or 7d ago, or an ISO 8601 time',
          { member: 'since', isRequired: true, parse: (text) => pastTime('--since', text) },
        ],
        ['--until <time>', 'end (now)', { member: 'until', parse: (text) => pastTime('--until', text) }],
        ['--dry-run', 'only count', { member: 'dryRun' }],
        ['--no-wait', 'do not wait until it ends'],
      ],
      help: '\nThe server continues if this command is interrupted.',
      request: 'POST /endpoints/{id}/recover',
      print: followRecovery,
    },
  ],
};

function shown({ id, url }: Endpoint): string {
  return `${id} (${printable(url)})`;
}

/** The status, with the reason if the server disabled the endpoint: `disabled (failing)`. */
function stateOf({ status, disabledReason }: Endpoint): string {
  return disabledReason === undefined ? status : `${status} (${disabledReason})`;
}

/** Prints only the secret on stdout. */
function newSecret({
  secret,
  id,
  url,
  scheme,
  events,
}: Endpoint & { readonly secret: string }): Partial<Printed> {
  return {
    text: secret,
    notes: [
      `${id}: ${printable(events.join(', '))} to ${printable(url)}, signed as ${scheme}`,
      'the secret is shown only once; give it to the receiver now',
    ],
  };
}

/** @param line `Name: value`, as in a request; the server validates names and values */
function withHeader(line: string, before: Readonly<Record<string, string>> = {}): object {
  const colon = line.indexOf(':');
  const name = line.slice(0, Math.max(0, colon)).trim();
  if (name === '' || Object.hasOwn(before, name)) {
    const problem =
      name === '' ? `must be like "Name: value", not ${JSON.stringify(line)}` : `has ${name} twice`;
    throw usageFailure(`--header ${problem}`);
  }
  return { ...before, [name]: line.slice(colon + 1).trim() };
}

type WaitArguments = {
  /** False for `--no-wait`. */
  readonly wait: boolean;
};

const againMs = 100;
/** More than the longest timeout of a receiver. */
const patienceMs = 40_000;

/** Waits for the first attempt, and fails if it did. */
async function awaitTest(
  queued: Delivery,
  { server, options: { wait } }: Call<WaitArguments>,
): Promise<Partial<Printed>> {
  const delivery = wait ? await attempted(server(), queued) : queued;
  const printed = await withAttempts(wait ? server() : undefined, delivery);
  return wait && delivery.status !== 'delivered' ? { ...printed, failure: '' } : printed;
}

async function attempted(server: ServerClient, queued: Delivery): Promise<Delivery> {
  const endAt = performance.now() + patienceMs;
  let delivery = queued;
  while (delivery.attemptCount === 0) {
    if (performance.now() > endAt) {
      const message = `${queued.id} was not attempted within ${patienceMs / 1000} seconds; "comity deliveries show ${queued.id}" shows when it was`;
      throw new CommandFailure(message);
    }
    await delay(againMs);
    delivery = (await server.ask('GET', `/deliveries/${queued.id}`)) as Delivery;
  }
  return delivery;
}

const recoveryLookMs = 250;

/** The server does the work; this shows its progress, and an interrupt does not stop it. */
async function followRecovery(
  begun: Recovery,
  { terminal, server, options: { wait } }: Call<WaitArguments>,
): Promise<Printed> {
  const recovery = wait ? await followed(terminal, server(), begun) : begun;
  const printed = { json: recovery, text: recoveryText(recovery) };
  if (recovery.status !== 'stopped') return printed;
  return { ...printed, failure: `${recovery.id} was stopped before its end` };
}

async function followed(terminal: Terminal, server: ServerClient, begun: Recovery): Promise<Recovery> {
  const { showStatusLine } = await import('../terminal.ts');
  const line = showStatusLine(terminal.stderr);
  let recovery = begun;
  try {
    while (recovery.status === 'running') {
      line.show(`comity: ${recovery.examined} events examined, ${recovery.matching} for this endpoint`);
      await delay(recoveryLookMs);
      const subject = `recovery ${begun.id} any more; it was stopped`;
      recovery = (await server.ask('GET', `/recoveries/${begun.id}`, { subject })) as Recovery;
    }
  } finally {
    line.end();
  }
  return recovery;
}

function recoveryText({ id, status, dryRun, examined, matching, resent, created }: Recovery): string {
  if (status === 'running') return `${id} is running.`;
  const verb = dryRun ? 'would be sent' : 'are sent';
  return (
    `${id}: ${examined} events examined, ${matching} for this endpoint; ` +
    `${resent} that had failed ${verb} again, ${created} that were missed ${verb}.`
  );
}

/** `comity endpoints` and its subcommands. The secret of an existing endpoint is never shown again. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Delivery } from '../../model/delivery.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import type { Recovery } from '../../webhooks/sending/recovery/recovery.ts';
import { isConfirmed } from '../confirm.ts';
import { attemptsOf, deliveryPath, tellDelivery } from '../deliveries/delivery-commands.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { pastTime } from '../option-values.ts';
import { showStatusLine } from '../progress.ts';
import { openWebhookServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import { labelledLines, printable, tableText, tellList } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export async function showEndpoint(
  terminal: Terminal,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  tellEndpoint(terminal, await findEndpoint(openWebhookServer(terminal, options), id), json);
  return exitCodes.done;
}

export async function findEndpoint(server: ServerClient, id: string): Promise<Endpoint> {
  return (await server.ask('GET', endpointPath(id), { subject: `endpoint ${id}` })) as Endpoint;
}

export function endpointPath(id: string): string {
  return `/endpoints/${encodeURIComponent(id)}`;
}

export type ShownSecret = Endpoint & { readonly secret: string };

export function tellEndpoint(terminal: Terminal, endpoint: Endpoint, json: boolean): void {
  terminal.out(json ? JSON.stringify(endpoint, undefined, 2) : endpointText(endpoint));
}

export function tellNewSecret(terminal: Terminal, endpoint: ShownSecret, json: boolean): void {
  if (json) {
    terminal.out(JSON.stringify(endpoint, undefined, 2));
    return;
  }
  terminal.out(endpoint.secret);
  const { id, url, scheme, events } = endpoint;
  terminal.err(`comity: ${id}: ${printable(events.join(', '))} to ${printable(url)}, signed as ${scheme}`);
  terminal.err('comity: the secret is shown only once; give it to the receiver now');
}

function endpointText(endpoint: Endpoint): string {
  const { id, url, description, events, scheme, mode, signatures, tenant, headers = {} } = endpoint;
  return labelledLines([
    ['id', id],
    ['url', url],
    ['description', description],
    ['events', events.join(', ')],
    ['scheme', mode === undefined ? scheme : `${scheme}, ${mode}`],
    ['signatures', signatures?.join(', ')],
    ['status', stateOf(endpoint)],
    ['tenant', tenant],
    ...Object.entries(headers).map(([name, value]) => ['header', `${name}: ${value}`] as const),
    ['in flight', endpoint.maxInFlight === undefined ? undefined : `at most ${endpoint.maxInFlight}`],
    ['rate', endpoint.ratePerSecond === undefined ? undefined : `at most ${endpoint.ratePerSecond}/s`],
    ['created', endpoint.createdAt],
    ['changed', endpoint.updatedAt],
  ]);
}

export function endpointsText(endpoints: readonly Endpoint[]): string {
  const rows = endpoints.map((endpoint) => [
    ...[endpoint.id, stateOf(endpoint), endpoint.scheme, endpoint.tenant ?? '', endpoint.events.join(', ')],
    endpoint.url,
  ]);
  return tableText([['ID', 'STATUS', 'SCHEME', 'TENANT', 'EVENTS', 'URL'], ...rows]);
}

/** The status, with the reason if the server disabled the endpoint: `disabled (failing)`. */
function stateOf({ status, disabledReason }: Endpoint): string {
  return disabledReason === undefined ? status : `${status} (${disabledReason})`;
}

export type ListArguments = ServerArguments & { readonly limit: number };

/** `comity endpoints list`: the newest first. */
export async function listEndpoints(
  terminal: Terminal,
  options: ListArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(terminal, options);
  const listed = await server.list<Endpoint>('/endpoints?sort=-id', options.limit);
  tellList(terminal, listed, json, { text: endpointsText, none: 'No endpoints.' });
  return exitCodes.done;
}

export type CreateArguments = ServerArguments & {
  readonly to: string;
  /** Absent: all events. */
  readonly events?: readonly string[];
  readonly scheme?: string;
  readonly mode?: string;
  readonly signatures?: readonly string[];
  readonly tenant?: string;
  readonly description?: string;
  readonly header?: readonly string[];
  readonly maxInFlight?: number;
  readonly rate?: number;
};

/** `comity endpoints create`: registers a receiver and prints its secret once. */
export async function createEndpoint(
  terminal: Terminal,
  options: CreateArguments,
  json: boolean,
): Promise<number> {
  const { to, events = ['*'], scheme, mode, signatures } = options;
  const { tenant, description, header, maxInFlight, rate } = options;
  const headers = header === undefined ? undefined : headersOf(header);
  const server = openWebhookServer(terminal, options);
  const made = await server.ask('POST', '/endpoints', {
    json: {
      ...{ url: to, events },
      ...(scheme === undefined ? {} : { scheme }),
      ...(mode === undefined ? {} : { mode }),
      ...(signatures === undefined ? {} : { signatures }),
      ...(tenant === undefined ? {} : { tenant }),
      ...(description === undefined ? {} : { description }),
      ...(headers === undefined ? {} : { headers }),
      ...(maxInFlight === undefined ? {} : { maxInFlight }),
      ...(rate === undefined ? {} : { ratePerSecond: rate }),
    },
  });
  tellNewSecret(terminal, made as ShownSecret, json);
  return exitCodes.done;
}

/** @param lines `Name: value`, as in a request; the server validates names and values */
function headersOf(lines: readonly string[]): Readonly<Record<string, string>> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).trim();
    if (colon < 1 || name === '' || headers.has(name)) {
      const problem = headers.has(name) ? `has ${name} twice` : `must be like "Name: value"`;
      const message = `--header ${problem}, not ${JSON.stringify(line)}`;
      throw new CommandFailure(headers.has(name) ? `--header ${problem}` : message, {
        exitCode: exitCodes.usage,
      });
    }
    headers.set(name, line.slice(colon + 1).trim());
  }
  return Object.fromEntries(headers);
}

export type DeleteArguments = ServerArguments & { readonly yes?: boolean };

/** `comity endpoints delete`: ends sending to the endpoint. Its deliveries stay in the log. */
export async function deleteEndpoint(
  terminal: Terminal,
  id: string,
  options: DeleteArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(terminal, options);
  const { url } = await findEndpoint(server, id);
  const shown = `${id} (${printable(url)})`;
  if (options.yes !== true && !json && !(await isConfirmed(terminal, `Delete ${shown}?`))) {
    terminal.err('comity: nothing was deleted');
    return exitCodes.failed;
  }
  await server.ask('DELETE', endpointPath(id), { subject: `endpoint ${id}` });
  terminal.out(json ? JSON.stringify({ id, url, deleted: true }) : `${shown} was deleted.`);
  return exitCodes.done;
}

/** `comity endpoints enable` and `disable`. Deliveries wait while the endpoint is disabled. */
export async function setEndpointStatus(
  terminal: Terminal,
  id: string,
  status: Endpoint['status'],
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const request = { json: { status }, subject: `endpoint ${id}` };
  const changed = await openWebhookServer(terminal, options).ask('PATCH', endpointPath(id), request);
  tellEndpoint(terminal, changed as Endpoint, json);
  return exitCodes.done;
}

export type RotateArguments = ServerArguments & { readonly overlap?: number };

/** `comity endpoints rotate-secret`: the old secret stops signing at once, or after `--overlap` seconds. */
export async function rotateSecret(
  terminal: Terminal,
  id: string,
  options: RotateArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(terminal, options);
  const rotated = await server.ask('POST', `${endpointPath(id)}/rotate-secret`, {
    json: options.overlap === undefined ? {} : { overlapSeconds: options.overlap },
    subject: `endpoint ${id}`,
  });
  tellNewSecret(terminal, rotated as ShownSecret, json);
  return exitCodes.done;
}

export type TestArguments = ServerArguments & {
  readonly type?: string;
  /** False for `--no-wait`. */
  readonly wait: boolean;
};

const againMs = 100;
/** More than the longest timeout of a receiver. */
const patienceMs = 40_000;

/** `comity endpoints test`: sends one event, waits for the first attempt, and exits 1 if it failed. */
export async function testEndpoint(
  terminal: Terminal,
  id: string,
  options: TestArguments,
  json: boolean,
): Promise<number> {
  const { type, wait } = options;
  const server = openWebhookServer(terminal, options);
  const queued = (await server.ask('POST', `${endpointPath(id)}/test`, {
    json: type === undefined ? {} : { type },
    subject: `endpoint ${id}`,
  })) as Delivery;
  const delivery = wait ? await attempted(server, queued) : queued;
  tellDelivery(terminal, { ...delivery, attempts: wait ? await attemptsOf(server, delivery.id) : [] }, json);
  return wait && delivery.status !== 'delivered' ? exitCodes.failed : exitCodes.done;
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
    delivery = (await server.ask('GET', deliveryPath(queued.id))) as Delivery;
  }
  return delivery;
}

export type RecoverArguments = ServerArguments & {
  readonly since: string;
  readonly until?: string;
  readonly dryRun?: boolean;
  /** False for `--no-wait`. */
  readonly wait: boolean;
};

const recoveryLookMs = 250;

/**
 * `comity endpoints recover`: resends what an endpoint missed since a time. The server does the work; this command
 * shows its progress, and an interrupt does not stop it.
 */
export async function recoverEndpoint(
  terminal: Terminal,
  id: string,
  options: RecoverArguments,
  json: boolean,
): Promise<number> {
  const now = Date.now();
  const { since, until, dryRun = false, wait } = options;
  const wanted = {
    since: pastTime('--since', since, now),
    ...(until === undefined ? {} : { until: pastTime('--until', until, now) }),
    dryRun,
  };
  const server = openWebhookServer(terminal, options);
  const request = { json: wanted, subject: `endpoint ${id}` };
  const begun = (await server.ask('POST', `${endpointPath(id)}/recover`, request)) as Recovery;
  const recovery = wait ? await followed(terminal, server, begun) : begun;
  terminal.out(json ? JSON.stringify(recovery, undefined, 2) : recoveryText(recovery));
  if (recovery.status === 'stopped') throw new CommandFailure(`${recovery.id} was stopped before its end`);
  return exitCodes.done;
}

async function followed(terminal: Terminal, server: ServerClient, begun: Recovery): Promise<Recovery> {
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

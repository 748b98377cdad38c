/** `comity deliveries show`, `list` and `resend`. */
import type { Delivery } from '../../model/delivery.ts';
import type { Attempt } from '../../webhooks/sending/delivery-attempt-log.ts';
import { changeEach } from '../change-each.ts';
import { exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import { labelledLines, tableText, tellList } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export async function showDelivery(
  terminal: Terminal,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(terminal, options);
  const delivery = (await server.ask('GET', deliveryPath(id), { subject: `delivery ${id}` })) as Delivery;
  tellDelivery(terminal, { ...delivery, attempts: await attemptsOf(server, id) }, json);
  return exitCodes.done;
}

export type Attempted = Delivery & { readonly attempts: readonly Attempt[] };

/** Keeps a snippet on its line of the terminal; `--json` shows all that is stored. */
const snippetCharactersMax = 60;
/** A delivery has some dozens. */
const attemptsMax = 1000;

export function deliveryPath(id: string): string {
  return `/deliveries/${encodeURIComponent(id)}`;
}

/** The oldest first. */
export async function attemptsOf(server: ServerClient, id: string): Promise<readonly Attempt[]> {
  return (await server.list<Attempt>(`${deliveryPath(id)}/attempts`, attemptsMax)).items;
}

export function tellDelivery(terminal: Terminal, delivery: Attempted, json: boolean): void {
  terminal.out(json ? JSON.stringify(delivery, undefined, 2) : deliveryText(delivery));
}

function deliveryText({ attempts, ...delivery }: Attempted): string {
  const { id, eventId, eventType, endpointId, status, nextAttemptAt, dueAt } = delivery;
  const lines = labelledLines([
    ['id', id],
    ['event', `${eventId} (${eventType})`],
    ['endpoint', endpointId],
    ['status', status],
    ['attempts', delivery.attemptCount],
    ['due', dueAt === nextAttemptAt ? null : dueAt],
    ['next', nextAttemptAt],
    ['created', delivery.createdAt],
    ['changed', delivery.updatedAt],
  ]);
  return attempts.length === 0 ? lines : `${lines}\n\n${attemptsText(attempts)}`;
}

function attemptsText(attempts: readonly Attempt[]): string {
  const rows = attempts.map(({ at, trigger, statusCode, error, message, latencyMs, responseSnippet }) => [
    ...[at, trigger, statusCode === null ? (error ?? '') : String(statusCode), `${Math.round(latencyMs)} ms`],
    onOneLine(statusCode === null ? (message ?? '') : responseSnippet),
  ]);
  return tableText([['AT', 'TRIGGER', 'OUTCOME', 'TOOK', 'ANSWER'], ...rows]);
}

const whiteSpace = /\s+/g;

function onOneLine(text: string): string {
  return text.replace(whiteSpace, ' ').trim().slice(0, snippetCharactersMax);
}

export function deliveriesText(deliveries: readonly Delivery[]): string {
  const rows = deliveries.map((delivery) => {
    const { id, eventType, endpointId, status, attemptCount, lastStatusCode, lastError } = delivery;
    return [
      ...[id, eventType, endpointId, status, String(attemptCount)],
      ...[String(lastStatusCode ?? lastError ?? ''), delivery.nextAttemptAt ?? '', delivery.createdAt],
    ];
  });
  const head = ['ID', 'EVENT TYPE', 'ENDPOINT', 'STATUS', 'ATTEMPTS', 'LAST', 'NEXT ATTEMPT', 'CREATED'];
  return tableText([head, ...rows]);
}

export type ListArguments = ServerArguments & {
  readonly endpoint?: string;
  readonly status?: string;
  readonly event?: string;
  readonly type?: string;
  readonly limit: number;
};

/** `comity deliveries list`: the newest first. */
export async function listDeliveries(
  terminal: Terminal,
  options: ListArguments,
  json: boolean,
): Promise<number> {
  const { endpoint, status, event, type, limit } = options;
  const server = openWebhookServer(terminal, options);
  const query = new URLSearchParams({ sort: '-id' });
  if (endpoint !== undefined) query.set('endpointId', endpoint);
  if (status !== undefined) query.set('status', status);
  if (event !== undefined) query.set('eventId', event);
  if (type !== undefined) query.set('eventType', type);
  const listed = await server.list<Delivery>(`/deliveries?${query}`, limit);
  tellList(terminal, listed, json, { text: deliveriesText, none: 'No deliveries.' });
  return exitCodes.done;
}

/**
 * `comity deliveries resend`: retries deliveries at once; scheduled attempts stay scheduled (§3). The command line may
 * resend for 30 days, other clients for 15 (§6). A refusal does not stop the others; the command then fails.
 */
export async function resendDeliveries(
  terminal: Terminal,
  ids: readonly string[],
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(terminal, options);
  return changeEach(terminal, ids, json, {
    change(id) {
      const request = { json: { via: 'command-line' }, subject: `delivery ${id}` };
      return server.ask('POST', `${deliveryPath(id)}/resend`, request);
    },
    told: 'is resent.',
  });
}

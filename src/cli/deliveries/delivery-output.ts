/** A delivery and its attempts as the server shows them, for people and for programs. */
import type { Delivery } from '../../model/delivery.ts';
import type { Attempt } from '../../webhooks/outbound/attempt-row.ts';
import { labelledLines } from '../labelled-lines.ts';
import type { ServerClient } from '../server-client.ts';
import { tableText } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export type Attempted = Delivery & { readonly attempts: readonly Attempt[] };

/** A snippet is cut to what stands beside it on a terminal; `--json` shows all that is kept. */
const snippetCharactersMax = 60;
/** Nobody reads more; a delivery has some dozens. */
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

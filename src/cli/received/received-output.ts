/** A received message and the attempts to hand it on as the server shows them, for people and for programs. */
import type { Received } from '../../model/received.ts';
import { labelledLines } from '../labelled-lines.ts';
import type { ServerClient } from '../server-client.ts';
import { tableText } from '../table.ts';

/** As served; webhooks/inbound/tables.ts says what each member means. */
export type ReceivedAttempt = {
  readonly number: number;
  readonly outcome: string;
  readonly error: string | null;
  readonly message: string | null;
  readonly statusCode: number | null;
  readonly trigger: string;
  readonly at: string;
  readonly durationMs: number;
};

export type AttemptedReceived = Received & { readonly attemptLog: readonly ReceivedAttempt[] };

/** What stands beside it on a terminal; `--json` shows all that is kept. */
const messageCharactersMax = 60;
/** Nobody reads more; a message has some dozens. */
const attemptsMax = 1000;

export function receivedPath(id: string): string {
  return `/received/${encodeURIComponent(id)}`;
}

export async function findReceived(server: ServerClient, id: string): Promise<Received> {
  return (await server.ask('GET', receivedPath(id), { subject: subjectOf(id) })) as Received;
}

export function subjectOf(id: string): string {
  return `received message ${id}`;
}

/** The oldest first. */
export async function attemptsOf(server: ServerClient, id: string): Promise<readonly ReceivedAttempt[]> {
  return (await server.list<ReceivedAttempt>(`${receivedPath(id)}/attempts`, attemptsMax)).items;
}

export function receivedText({ attemptLog, ...received }: AttemptedReceived): string {
  const { id, sender, dedupeKey, type, receivedAt, status, dueAt, lastError } = received;
  const { contentType, contentLength, updatedAt } = received;
  const lines = labelledLines([
    ['id', id],
    ['sender', sender],
    ['key', dedupeKey],
    ['type', type],
    ['status', lastError === null ? status : `${status} (${lastError})`],
    ['attempts', received.attempts],
    ['due', dueAt],
    ['content', `${contentLength} octets of ${contentType ?? 'no type'}`],
    ['received', receivedAt],
    ['changed', updatedAt],
  ]);
  return attemptLog.length === 0 ? lines : `${lines}\n\n${attemptsText(attemptLog)}`;
}

export function attemptsText(attempts: readonly ReceivedAttempt[]): string {
  const rows = attempts.map(({ at, trigger, outcome, error, statusCode, durationMs, message }) => [
    ...[at, trigger, statusCode === null ? (error ?? outcome) : String(statusCode)],
    `${Math.round(durationMs)} ms`,
    onOneLine(message ?? ''),
  ]);
  return tableText([['AT', 'TRIGGER', 'OUTCOME', 'TOOK', 'MESSAGE'], ...rows]);
}

export function receivedListText(messages: readonly Received[]): string {
  const rows = messages.map(({ id, sender, type, status, attempts, lastError, dueAt, receivedAt }) => [
    ...[id, sender, type ?? '', status, String(attempts), lastError ?? '', dueAt ?? '', receivedAt],
  ]);
  const head = ['ID', 'SENDER', 'TYPE', 'STATUS', 'ATTEMPTS', 'LAST ERROR', 'DUE', 'RECEIVED'];
  return tableText([head, ...rows]);
}

const whiteSpace = /\s+/g;

function onOneLine(text: string): string {
  return text.replace(whiteSpace, ' ').trim().slice(0, messageCharactersMax);
}

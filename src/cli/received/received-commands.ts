/** `comity received` and its subcommands. */

import type { Received } from '../../model/received.ts';
import { changeEach } from '../change-each.ts';
import { isConfirmed } from '../confirm.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { pastTime } from '../option-values.ts';
import { showStatusLine } from '../progress.ts';
import { openServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import { labelledLines, tableText, tellList } from '../table.ts';
import type { Output, Terminal } from '../terminal.ts';

export async function showReceived(
  terminal: Terminal,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const received = { ...(await findReceived(server, id)), attemptLog: await attemptsOf(server, id) };
  terminal.out(json ? JSON.stringify(received, undefined, 2) : receivedText(received));
  return exitCodes.done;
}

/** As served; webhooks/receiving/received-tables.ts describes the members. */
type ReceivedAttempt = {
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

/** Keeps the message on its line of the terminal; `--json` shows all that is stored. */
const messageCharactersMax = 60;
/** A message has some dozens. */
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

function receivedText({ attemptLog, ...received }: AttemptedReceived): string {
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

export type ListArguments = ServerArguments & Choice & { readonly limit: number };

/** `comity received list`: the newest first. */
export async function listReceived(
  terminal: Terminal,
  options: ListArguments,
  json: boolean,
): Promise<number> {
  const query = parametersOf(options, Date.now());
  query.set('sort', '-id');
  const listed = await openServer(terminal, options).list<Received>(`/received?${query}`, options.limit);
  tellList(terminal, listed, json, { text: receivedListText, none: 'No received messages.' });
  return exitCodes.done;
}

export type MarkArguments = ServerArguments & { readonly as: string };

/** `comity received mark`: sets the status by hand. The message is not handed on again unless it is replayed. */
export async function markReceived(
  terminal: Terminal,
  id: string,
  options: MarkArguments,
  json: boolean,
): Promise<number> {
  const request = { json: { status: options.as }, subject: subjectOf(id) };
  const marked = (await openServer(terminal, options).ask('PATCH', receivedPath(id), request)) as Received;
  terminal.out(json ? JSON.stringify(marked, undefined, 2) : `${id} is ${marked.status}.`);
  return exitCodes.done;
}

/** `comity received attempts`: the attempts to hand one message on, the oldest first. */
export async function listAttempts(
  terminal: Terminal,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  // Distinguishes a missing message from one without attempts.
  await findReceived(server, id);
  const items = await attemptsOf(server, id);
  tellList(terminal, { items, more: false }, json, { text: attemptsText, none: 'No attempts.' });
  return exitCodes.done;
}

/** `comity received body`: the octets of one message on stdout, as its sender signed them. */
export async function writeBody(
  terminal: Terminal,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const { contentType } = await findReceived(server, id);
  if (json) {
    const chunks: Buffer[] = [];
    await octetsOf(server, id, async (chunk) => void chunks.push(chunk));
    const body = Buffer.concat(chunks).toString('base64');
    terminal.out(JSON.stringify({ id, contentType, body }, undefined, 2));
  } else {
    // The callback of each write reports the error as well; an unhandled event would end the program.
    terminal.stdout.on('error', () => undefined);
    await octetsOf(server, id, (chunk) => writeTo(terminal.stdout, chunk));
  }
  return exitCodes.done;
}

function writeTo(stdout: Output, chunk: Buffer): Promise<void> {
  return new Promise((written, failed) => {
    stdout.write(chunk, (error) => (error ? failed(error) : written()));
  });
}

async function octetsOf(
  server: ServerClient,
  id: string,
  take: (chunk: Buffer) => Promise<void>,
): Promise<void> {
  try {
    await server.octets(`${receivedPath(id)}/body`, `body of ${id} any more`, take);
  } catch (error) {
    // A reader that closed the pipe, such as `head`, has enough.
    if (!isBrokenPipe(error)) throw error;
  }
}

function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EPIPE';
}

export type ReplayArguments = ServerArguments &
  Choice & { readonly dryRun?: boolean; readonly yes?: boolean };

type PutBack = {
  readonly replayed: number;
  readonly skipped: number;
  readonly more: boolean;
  readonly lastId: string | null;
};

/** Messages per request: some tenths of a second of the server's time. The server may have a lower bound. */
const pieceMessagesMax = 1000;

/**
 * `comity received replay`: hands on again the messages that are named, or all that the options select. The latter
 * takes one request for each piece, each beginning after the last message of the one before, so that progress can be
 * shown; messages that arrive meanwhile are excluded.
 */
export async function replayReceived(
  terminal: Terminal,
  ids: readonly string[],
  options: ReplayArguments,
  json: boolean,
): Promise<number> {
  const filter = filterOf(options, Date.now());
  const chooses = Object.keys(filter).length > 0;
  if (ids.length > 0 && (chooses || options.dryRun === true)) {
    throw usage('name messages by their ids, or select them by options, not both');
  }
  const server = openServer(terminal, options);
  if (ids.length > 0) return replayEach(terminal, server, ids, json);
  if (!chooses)
    throw usage('name the messages by their ids, or select them by --sender, --status, --type or --since');
  return replayChosen(terminal, server, filter, options, json);
}

function usage(message: string): CommandFailure {
  return new CommandFailure(message, { exitCode: exitCodes.usage });
}

async function replayEach(
  terminal: Terminal,
  server: ServerClient,
  ids: readonly string[],
  json: boolean,
): Promise<number> {
  return changeEach(terminal, ids, json, {
    change: (id) => server.ask('POST', `${receivedPath(id)}/replay`, { json: {}, subject: subjectOf(id) }),
    told: 'is handed on again.',
  });
}

async function replayChosen(
  terminal: Terminal,
  server: ServerClient,
  chosen: ChosenFilter,
  { dryRun = false, yes = false }: ReplayArguments,
  json: boolean,
): Promise<number> {
  const filter = { and: [chosen, await upToNow(server)] };
  const found = await ask(server, { filter, dryRun: true });
  const count = `${found.replayed}${found.more ? ' or more' : ''}`;
  if (dryRun) {
    tell(
      terminal,
      { replayed: found.replayed, skipped: 0 },
      `${count} messages would be handed on again.`,
      true,
      json,
    );
    return exitCodes.done;
  }
  if (
    found.replayed > 0 &&
    !yes &&
    !json &&
    !(await isConfirmed(terminal, `Hand ${count} messages on again?`))
  ) {
    terminal.err('comity: nothing was replayed');
    return exitCodes.failed;
  }
  const { replayed, skipped } = await inPieces(terminal, server, filter, count);
  const others = skipped === 0 ? '' : `; ${skipped} could not be, because their bodies or senders are gone`;
  tell(terminal, { replayed, skipped }, `${replayed} messages are handed on again${others}.`, false, json);
  return exitCodes.done;
}

/** Excludes messages that arrive while the command runs. */
async function upToNow(server: ServerClient): Promise<ChosenFilter> {
  const { items } = await server.list<Received>('/received?sort=-id', 1);
  return items[0] === undefined ? {} : { id: { lte: items[0].id } };
}

async function inPieces(
  terminal: Terminal,
  server: ServerClient,
  filter: ChosenFilter,
  count: string,
): Promise<{ readonly replayed: number; readonly skipped: number }> {
  const line = showStatusLine(terminal.stderr);
  let [replayed, skipped] = [0, 0];
  let after: string | null = null;
  try {
    for (;;) {
      const rest: ChosenFilter = after === null ? filter : { and: [filter, { id: { gt: after } }] };
      const piece: PutBack = await ask(server, { filter: rest, limit: pieceMessagesMax });
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

async function ask(server: ServerClient, json: object): Promise<PutBack> {
  return (await server.ask('POST', '/received/replay', { json })) as PutBack;
}

function tell(
  terminal: Terminal,
  counts: { readonly replayed: number; readonly skipped: number },
  text: string,
  dryRun: boolean,
  json: boolean,
): void {
  terminal.out(json ? JSON.stringify({ ...counts, dryRun }, undefined, 2) : text);
}

export type Choice = {
  readonly sender?: string;
  readonly status?: string;
  readonly type?: string;
  readonly since?: string;
};

/** The filter of a JSON QUERY (§4.9); empty: every message. */
type ChosenFilter = Readonly<Record<string, unknown>>;

function filterOf({ sender, status, type, since }: Choice, nowMs: number): ChosenFilter {
  return {
    ...(sender === undefined ? {} : { sender }),
    ...(status === undefined ? {} : { status }),
    ...(type === undefined ? {} : { type }),
    ...(since === undefined ? {} : { receivedAt: { gte: pastTime('--since', since, nowMs) } }),
  };
}

/** The same as a query component. */
export function parametersOf({ sender, status, type, since }: Choice, nowMs: number): URLSearchParams {
  const query = new URLSearchParams();
  if (sender !== undefined) query.set('sender', sender);
  if (status !== undefined) query.set('status', status);
  if (type !== undefined) query.set('type', type);
  if (since !== undefined) query.set('receivedAt[gte]', pastTime('--since', since, nowMs));
  return query;
}

/**
 * `comity received replay`: hands messages on again, those that are named, or all that the options choose. The latter is asked for in
 * pieces, each going on behind the last message of the one before, so that it shows how far it has come and ends where it began to ask.
 */
import type { Received } from '../../model/received.ts';
import { isConfirmed } from '../confirm.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { openServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import { showStatusLine } from '../status-line.ts';
import type { Terminal } from '../terminal.ts';
import { type Choice, type ChosenFilter, filterOf } from './choice.ts';
import { receivedPath, subjectOf } from './received-output.ts';

export type ReplayArguments = ServerArguments &
  Choice & { readonly dryRun?: boolean; readonly yes?: boolean };

type PutBack = {
  readonly replayed: number;
  readonly skipped: number;
  readonly more: boolean;
  readonly lastId: string | null;
};

/** Asked for at a time: some tenths of a second of the server's time. The server may have a lower bound of its own. */
const pieceMessagesMax = 1000;

export async function replayReceived(
  terminal: Terminal,
  ids: readonly string[],
  options: ReplayArguments,
  json: boolean,
): Promise<number> {
  const filter = filterOf(options, Date.now());
  const chooses = Object.keys(filter).length > 0;
  if (ids.length > 0 && (chooses || options.dryRun === true)) {
    throw usage('name messages by their ids, or choose them by options, not both');
  }
  const server = openServer(terminal, options);
  if (ids.length > 0) return replayEach(terminal, server, ids, json);
  if (!chooses) throw usage('say which messages: their ids, or --sender, --status, --type or --since');
  return replayChosen(terminal, server, filter, options, json);
}

function usage(message: string): CommandFailure {
  return new CommandFailure(message, { exitCode: exitCodes.usage });
}

/** One that cannot be replayed does not keep the others from it; then the command fails at the end. */
async function replayEach(
  terminal: Terminal,
  server: ServerClient,
  ids: readonly string[],
  json: boolean,
): Promise<number> {
  const replayed: Received[] = [];
  const failures: string[] = [];
  for (const id of ids) {
    try {
      const asked = { json: {}, subject: subjectOf(id) };
      replayed.push((await server.ask('POST', `${receivedPath(id)}/replay`, asked)) as Received);
      if (!json) terminal.out(`${id} is handed on again.`);
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      failures.push(ids.length === 1 ? error.message : `${id}: ${error.message}`);
    }
  }
  if (json) terminal.out(JSON.stringify(replayed, undefined, 2));
  for (const failure of failures) terminal.err(`comity: ${failure}`);
  return failures.length > 0 ? exitCodes.failed : exitCodes.done;
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
  const others = skipped === 0 ? '' : `; ${skipped} could not be, their bodies or senders are gone`;
  tell(terminal, { replayed, skipped }, `${replayed} messages are handed on again${others}.`, false, json);
  return exitCodes.done;
}

/** What comes while it is at work was not meant. */
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

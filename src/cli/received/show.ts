/** `comity received show`: one message with the attempts to hand it on. */
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { attemptsOf, findReceived, receivedText } from './received-output.ts';

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

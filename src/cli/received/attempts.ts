/** `comity received attempts`: how handing one message on was tried, the oldest first. */
import { exitCodes } from '../failure.ts';
import { tellList } from '../list-output.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { attemptsOf, attemptsText, findReceived } from './received-output.ts';

export async function listAttempts(
  terminal: Terminal,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  // Tells a message that is not there from one that nobody tried.
  await findReceived(server, id);
  const items = await attemptsOf(server, id);
  tellList(terminal, { items, more: false }, json, { text: attemptsText, none: 'No attempts.' });
  return exitCodes.done;
}

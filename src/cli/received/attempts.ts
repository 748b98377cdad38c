/** `comity received attempts`: how handing one message on was tried, the oldest first. */
import type { Environment } from '../../config/load-settings.ts';
import { exitCodes } from '../failure.ts';
import { tellList } from '../list-output.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { attemptsOf, attemptsText, findReceived } from './received-output.ts';

export async function listAttempts(
  environment: Environment,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(environment, options);
  // Tells a message that is not there from one that nobody tried.
  await findReceived(server, id);
  const items = await attemptsOf(server, id);
  tellList({ items, more: false }, json, { text: attemptsText, none: 'No attempts.' });
  return exitCodes.done;
}

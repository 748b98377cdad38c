/** `comity received show`: one message with the attempts to hand it on. */
import type { Environment } from '../../config/load-settings.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { attemptsOf, findReceived, receivedText } from './received-output.ts';

export async function showReceived(
  environment: Environment,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(environment, options);
  const received = { ...(await findReceived(server, id)), attemptLog: await attemptsOf(server, id) };
  console.log(json ? JSON.stringify(received, undefined, 2) : receivedText(received));
  return exitCodes.done;
}

/** `comity senders show`: one sender. Its secrets are not shown again by anything. */
import type { Environment } from '../../config/load-settings.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { type Sender, senderPath, senderText } from './sender-output.ts';

export async function showSender(
  environment: Environment,
  name: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(environment, options);
  const sender = (await server.ask('GET', senderPath(name), { subject: `sender ${name}` })) as Sender;
  console.log(json ? JSON.stringify(sender, undefined, 2) : senderText(sender));
  return exitCodes.done;
}

/** `comity senders show`: one sender. Its secrets are not shown again by anything. */
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { type Sender, senderPath, senderText } from './sender-output.ts';

export async function showSender(
  terminal: Terminal,
  name: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const sender = (await server.ask('GET', senderPath(name), { subject: `sender ${name}` })) as Sender;
  terminal.out(json ? JSON.stringify(sender, undefined, 2) : senderText(sender));
  return exitCodes.done;
}

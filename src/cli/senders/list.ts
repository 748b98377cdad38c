/** `comity senders`: whose webhooks are received. */
import { exitCodes } from '../failure.ts';
import { tellList } from '../list-output.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { type Sender, sendersText } from './sender-output.ts';

export async function listSenders(
  terminal: Terminal,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const { items } = (await openServer(terminal, options).ask('GET', '/senders')) as {
    readonly items: readonly Sender[];
  };
  tellList(terminal, { items, more: false }, json, { text: sendersText, none: 'No senders are declared.' });
  return exitCodes.done;
}

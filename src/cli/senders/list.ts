/** `comity senders`: whose webhooks are received. */
import type { Environment } from '../../config/load-settings.ts';
import { exitCodes } from '../failure.ts';
import { tellList } from '../list-output.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { type Sender, sendersText } from './sender-output.ts';

export async function listSenders(
  environment: Environment,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const { items } = (await openServer(environment, options).ask('GET', '/senders')) as {
    readonly items: readonly Sender[];
  };
  tellList({ items, more: false }, json, { text: sendersText, none: 'No senders are declared.' });
  return exitCodes.done;
}

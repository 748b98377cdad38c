/** `comity received list`: what came and what became of it, the newest first. */
import type { Received } from '../../model/received.ts';
import { exitCodes } from '../failure.ts';
import { tellList } from '../list-output.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { type Choice, parametersOf } from './choice.ts';
import { receivedListText } from './received-output.ts';

export type ListArguments = ServerArguments & Choice & { readonly limit: number };

export async function listReceived(
  terminal: Terminal,
  options: ListArguments,
  json: boolean,
): Promise<number> {
  const asked = parametersOf(options, Date.now());
  asked.set('sort', '-id');
  const listed = await openServer(terminal, options).list<Received>(`/received?${asked}`, options.limit);
  tellList(terminal, listed, json, { text: receivedListText, none: 'No received messages.' });
  return exitCodes.done;
}

/** `comity users list`: accounts, the newest first. Ids grow with time, and a list in their order costs the same however many there are. */
import type { User } from '../../auth/tables.ts';
import { exitCodes } from '../failure.ts';
import { tellList } from '../list-output.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { accountsText } from './account.ts';

export type ListArguments = ServerArguments & { readonly limit: number; readonly search?: string };

export async function listUsers(terminal: Terminal, options: ListArguments, json: boolean): Promise<number> {
  const server = openServer(terminal, options);
  const words = options.search === undefined ? '' : `&q=${encodeURIComponent(options.search)}`;
  const listed = await server.list<User>(`/users?sort=-id${words}`, options.limit);
  tellList(terminal, listed, json, { text: accountsText, none: 'No accounts.' });
  return exitCodes.done;
}

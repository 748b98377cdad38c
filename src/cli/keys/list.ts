/** `comity keys list`: the keys of everybody, the newest first, with when each was last used. */
import type { Key } from '../../auth/keys/key-rows.ts';
import { exitCodes } from '../failure.ts';
import { tellList } from '../list-output.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { keysText } from './key-output.ts';

export type ListArguments = ServerArguments & { readonly limit: number };

export async function listKeys(terminal: Terminal, options: ListArguments, json: boolean): Promise<number> {
  const server = openServer(terminal, options);
  const listed = await server.list<Key>('/keys?sort=-id', options.limit);
  tellList(terminal, listed, json, { text: keysText, none: 'No keys.' });
  return exitCodes.done;
}

/** `comity keys list`: the keys of everybody, the newest first, with when each was last used. */
import type { Key } from '../../auth/keys/key-rows.ts';
import type { Environment } from '../../config/load-settings.ts';
import { exitCodes } from '../failure.ts';
import { tellList } from '../list-output.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { keysText } from './key-output.ts';

export type ListArguments = ServerArguments & { readonly limit: number };

export async function listKeys(
  environment: Environment,
  options: ListArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(environment, options);
  const listed = await server.list<Key>('/keys?sort=-id', options.limit);
  tellList(listed, json, { text: keysText, none: 'No keys.' });
  return exitCodes.done;
}

/** `comity users show`: one account, by its id or its e-mail address. */
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { findAccount, tellAccount } from './account.ts';

export async function showUser(
  terminal: Terminal,
  name: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  tellAccount(terminal, await findAccount(openServer(terminal, options), name), json);
  return exitCodes.done;
}

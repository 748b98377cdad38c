/**
 * `comity users disable` and `enable`: from then on no credential of the account is good, its keys included; enabled again, its keys
 * and its password are, while sessions have to be opened anew.
 */
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { changeAccount, tellAccount } from './account.ts';

export async function setUserDisabled(
  terminal: Terminal,
  name: string,
  disabled: boolean,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  tellAccount(terminal, await changeAccount(openServer(terminal, options), name, { disabled }), json);
  return exitCodes.done;
}

/** `comity users set-roles`: the roles that an account has from then on, in place of those that it had. */
import { CommandFailure, exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { changeAccount, tellAccount } from './account.ts';

export type SetRolesArguments = ServerArguments & { readonly none?: boolean };

export async function setUserRoles(
  terminal: Terminal,
  name: string,
  roles: readonly string[],
  options: SetRolesArguments,
  json: boolean,
): Promise<number> {
  if ((roles.length === 0) !== (options.none === true)) {
    const message = 'name the roles that the account shall have, or say --none';
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
  }
  tellAccount(
    terminal,
    await changeAccount(openServer(terminal, options), name, { roles: [...new Set(roles)] }),
    json,
  );
  return exitCodes.done;
}

/** `comity users delete`: an account with its password, sessions and keys. What it made in the collections stays. */
import { isConfirmed } from '../confirm.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { findAccount } from './account.ts';

export type DeleteArguments = ServerArguments & { readonly yes?: boolean };

export async function deleteUser(
  terminal: Terminal,
  name: string,
  options: DeleteArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const { id, email } = await findAccount(server, name);
  const question = `Delete ${email} with its password, sessions and keys?`;
  if (options.yes !== true && !json && !(await isConfirmed(terminal, question))) {
    terminal.err('comity: nothing was deleted');
    return exitCodes.failed;
  }
  await server.ask('DELETE', `/users/${id}`, { subject: `account ${name}` });
  terminal.out(json ? JSON.stringify({ id, email, deleted: true }) : `${email} (${id}) was deleted.`);
  return exitCodes.done;
}

/** `comity users set-password`: a new password, from stdin or made and shown this once. It ends every session of the account. */
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { findAccount } from './account.ts';
import { madePassword, readPassword } from './password-input.ts';

export type SetPasswordArguments = ServerArguments & { readonly passwordStdin?: boolean };

export async function setUserPassword(
  terminal: Terminal,
  name: string,
  options: SetPasswordArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const given = options.passwordStdin === true ? await readPassword(terminal) : undefined;
  const password = given ?? madePassword();
  const { id, email } = await findAccount(server, name);
  await server.ask('POST', `/users/${id}/password`, { json: { password }, subject: `account ${name}` });
  const made = given === undefined ? { password } : {};
  if (json) terminal.out(JSON.stringify({ id, email, ...made }));
  else if (given === undefined) terminal.out(password);
  const shown = given === undefined ? '; it was made here and is shown this once' : '';
  terminal.err(`comity: ${email} has a new password and no sessions${shown}`);
  return exitCodes.done;
}

/** `comity users set-password`: a new password, from stdin or made and shown this once. It ends every session of the account. */
import type { Environment } from '../../config/load-settings.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { findAccount } from './account.ts';
import { madePassword, readPassword } from './password-input.ts';

export type SetPasswordArguments = ServerArguments & { readonly passwordStdin?: boolean };

export async function setUserPassword(
  environment: Environment,
  name: string,
  options: SetPasswordArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(environment, options);
  const given = options.passwordStdin === true ? await readPassword() : undefined;
  const password = given ?? madePassword();
  const { id, email } = await findAccount(server, name);
  await server.ask('POST', `/users/${id}/password`, { json: { password }, subject: `account ${name}` });
  const made = given === undefined ? { password } : {};
  if (json) console.log(JSON.stringify({ id, email, ...made }));
  else if (given === undefined) console.log(password);
  const shown = given === undefined ? '; it was made here and is shown this once' : '';
  console.error(`comity: ${email} has a new password and no sessions${shown}`);
  return exitCodes.done;
}

/** `comity users delete`: an account with its password, sessions and keys. What it made in the collections stays. */
import type { Environment } from '../../config/load-settings.ts';
import { isConfirmed } from '../confirm.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { findAccount } from './account.ts';

export type DeleteArguments = ServerArguments & { readonly yes?: boolean };

export async function deleteUser(
  environment: Environment,
  name: string,
  options: DeleteArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(environment, options);
  const { id, email } = await findAccount(server, name);
  const question = `Delete ${email} with its password, sessions and keys?`;
  if (options.yes !== true && !json && !(await isConfirmed(question))) {
    console.error('comity: nothing was deleted');
    return exitCodes.failed;
  }
  await server.ask('DELETE', `/users/${id}`, { subject: `account ${name}` });
  console.log(json ? JSON.stringify({ id, email, deleted: true }) : `${email} (${id}) was deleted.`);
  return exitCodes.done;
}

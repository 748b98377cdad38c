/** `comity users show`: one account, by its id or its e-mail address. */
import type { Environment } from '../../config/load-settings.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { findAccount, tellAccount } from './account.ts';

export async function showUser(
  environment: Environment,
  name: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  tellAccount(await findAccount(openServer(environment, options), name), json);
  return exitCodes.done;
}

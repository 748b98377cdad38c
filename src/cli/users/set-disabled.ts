/**
 * `comity users disable` and `enable`: from then on no credential of the account is good, its keys included; enabled again, its keys
 * and its password are, while sessions have to be opened anew.
 */
import type { Environment } from '../../config/load-settings.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { changeAccount, tellAccount } from './account.ts';

export async function setUserDisabled(
  environment: Environment,
  name: string,
  disabled: boolean,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  tellAccount(await changeAccount(openServer(environment, options), name, { disabled }), json);
  return exitCodes.done;
}

/** `comity endpoints delete`: nothing is sent there any more. Its deliveries stay in the log. */
import type { Environment } from '../../config/load-settings.ts';
import { isConfirmed } from '../confirm.ts';
import { exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments } from '../server-client.ts';
import { printable } from '../table.ts';
import { endpointPath, findEndpoint } from './show.ts';

export type DeleteArguments = ServerArguments & { readonly yes?: boolean };

export async function deleteEndpoint(
  environment: Environment,
  id: string,
  options: DeleteArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(environment, options);
  const { url } = await findEndpoint(server, id);
  const shown = `${id} (${printable(url)})`;
  if (options.yes !== true && !json && !(await isConfirmed(`Delete ${shown}?`))) {
    console.error('comity: nothing was deleted');
    return exitCodes.failed;
  }
  await server.ask('DELETE', endpointPath(id), { subject: `endpoint ${id}` });
  console.log(json ? JSON.stringify({ id, url, deleted: true }) : `${shown} was deleted.`);
  return exitCodes.done;
}

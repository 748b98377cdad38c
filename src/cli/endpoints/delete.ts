/** `comity endpoints delete`: nothing is sent there any more. Its deliveries stay in the log. */
import { isConfirmed } from '../confirm.ts';
import { exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments } from '../server-client.ts';
import { printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { endpointPath, findEndpoint } from './show.ts';

export type DeleteArguments = ServerArguments & { readonly yes?: boolean };

export async function deleteEndpoint(
  terminal: Terminal,
  id: string,
  options: DeleteArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(terminal, options);
  const { url } = await findEndpoint(server, id);
  const shown = `${id} (${printable(url)})`;
  if (options.yes !== true && !json && !(await isConfirmed(terminal, `Delete ${shown}?`))) {
    terminal.err('comity: nothing was deleted');
    return exitCodes.failed;
  }
  await server.ask('DELETE', endpointPath(id), { subject: `endpoint ${id}` });
  terminal.out(json ? JSON.stringify({ id, url, deleted: true }) : `${shown} was deleted.`);
  return exitCodes.done;
}

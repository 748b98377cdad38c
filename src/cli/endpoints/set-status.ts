/** `comity endpoints enable` and `disable`. What waits for a disabled endpoint is kept, and sent when it is enabled. */
import type { Endpoint } from '../../model/endpoint.ts';
import { exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { tellEndpoint } from './endpoint-output.ts';
import { endpointPath } from './show.ts';

export async function setEndpointStatus(
  terminal: Terminal,
  id: string,
  status: Endpoint['status'],
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const asked = { json: { status }, subject: `endpoint ${id}` };
  const changed = await openWebhookServer(terminal, options).ask('PATCH', endpointPath(id), asked);
  tellEndpoint(terminal, changed as Endpoint, json);
  return exitCodes.done;
}

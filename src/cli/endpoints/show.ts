/** `comity endpoints show`: one endpoint. Its secret is not shown again by anything. */
import type { Endpoint } from '../../model/endpoint.ts';
import { exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { tellEndpoint } from './endpoint-output.ts';

export async function showEndpoint(
  terminal: Terminal,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  tellEndpoint(terminal, await findEndpoint(openWebhookServer(terminal, options), id), json);
  return exitCodes.done;
}

export async function findEndpoint(server: ServerClient, id: string): Promise<Endpoint> {
  return (await server.ask('GET', endpointPath(id), { subject: `endpoint ${id}` })) as Endpoint;
}

export function endpointPath(id: string): string {
  return `/endpoints/${encodeURIComponent(id)}`;
}

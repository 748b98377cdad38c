/** `comity endpoints list`: where events are sent, the newest first. */
import type { Endpoint } from '../../model/endpoint.ts';
import { exitCodes } from '../failure.ts';
import { tellList } from '../list-output.ts';
import { openWebhookServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { endpointsText } from './endpoint-output.ts';

export type ListArguments = ServerArguments & { readonly limit: number };

export async function listEndpoints(
  terminal: Terminal,
  options: ListArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(terminal, options);
  const listed = await server.list<Endpoint>('/endpoints?sort=-id', options.limit);
  tellList(terminal, listed, json, { text: endpointsText, none: 'No endpoints.' });
  return exitCodes.done;
}

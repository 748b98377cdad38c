/** `comity endpoints list`: where events are sent, the newest first. */
import type { Environment } from '../../config/load-settings.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import { exitCodes } from '../failure.ts';
import { tellList } from '../list-output.ts';
import { openWebhookServer, type ServerArguments } from '../server-client.ts';
import { endpointsText } from './endpoint-output.ts';

export type ListArguments = ServerArguments & { readonly limit: number };

export async function listEndpoints(
  environment: Environment,
  options: ListArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(environment, options);
  const listed = await server.list<Endpoint>('/endpoints?sort=-id', options.limit);
  tellList(listed, json, { text: endpointsText, none: 'No endpoints.' });
  return exitCodes.done;
}

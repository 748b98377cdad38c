/** `comity deliveries list`: what was sent and what became of it, the newest first. */
import type { Delivery } from '../../model/delivery.ts';
import { exitCodes } from '../failure.ts';
import { tellList } from '../list-output.ts';
import { openWebhookServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { deliveriesText } from './delivery-output.ts';

export type ListArguments = ServerArguments & {
  readonly endpoint?: string;
  readonly status?: string;
  readonly event?: string;
  readonly type?: string;
  readonly limit: number;
};

export async function listDeliveries(
  terminal: Terminal,
  options: ListArguments,
  json: boolean,
): Promise<number> {
  const { endpoint, status, event, type, limit } = options;
  const server = openWebhookServer(terminal, options);
  const asked = new URLSearchParams({ sort: '-id' });
  if (endpoint !== undefined) asked.set('endpointId', endpoint);
  if (status !== undefined) asked.set('status', status);
  if (event !== undefined) asked.set('eventId', event);
  if (type !== undefined) asked.set('eventType', type);
  const listed = await server.list<Delivery>(`/deliveries?${asked}`, limit);
  tellList(terminal, listed, json, { text: deliveriesText, none: 'No deliveries.' });
  return exitCodes.done;
}

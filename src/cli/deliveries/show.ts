/** `comity deliveries show`: one delivery with its attempts. */
import type { Delivery } from '../../model/delivery.ts';
import { exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { attemptsOf, deliveryPath, tellDelivery } from './delivery-output.ts';

export async function showDelivery(
  terminal: Terminal,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(terminal, options);
  const delivery = (await server.ask('GET', deliveryPath(id), { subject: `delivery ${id}` })) as Delivery;
  tellDelivery(terminal, { ...delivery, attempts: await attemptsOf(server, id) }, json);
  return exitCodes.done;
}

/** `comity deliveries show`: one delivery with its attempts. */
import type { Environment } from '../../config/load-settings.ts';
import type { Delivery } from '../../model/delivery.ts';
import { exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments } from '../server-client.ts';
import { attemptsOf, deliveryPath, tellDelivery } from './delivery-output.ts';

export async function showDelivery(
  environment: Environment,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(environment, options);
  const delivery = (await server.ask('GET', deliveryPath(id), { subject: `delivery ${id}` })) as Delivery;
  tellDelivery({ ...delivery, attempts: await attemptsOf(server, id) }, json);
  return exitCodes.done;
}

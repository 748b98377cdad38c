/** `comity endpoints test`: sends one event to one endpoint, waits for the first attempt, and exits 1 when it was not accepted. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Delivery } from '../../model/delivery.ts';
import { attemptsOf, deliveryPath, tellDelivery } from '../deliveries/delivery-output.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { endpointPath } from './show.ts';

export type TestArguments = ServerArguments & {
  readonly type?: string;
  /** False for `--no-wait`. */
  readonly wait: boolean;
};

const againMs = 100;
/** More than the longest time that a receiver may be given. */
const patienceMs = 40_000;

export async function testEndpoint(
  terminal: Terminal,
  id: string,
  options: TestArguments,
  json: boolean,
): Promise<number> {
  const { type, wait } = options;
  const server = openWebhookServer(terminal, options);
  const queued = (await server.ask('POST', `${endpointPath(id)}/test`, {
    json: type === undefined ? {} : { type },
    subject: `endpoint ${id}`,
  })) as Delivery;
  const delivery = wait ? await attempted(server, queued) : queued;
  tellDelivery(terminal, { ...delivery, attempts: wait ? await attemptsOf(server, delivery.id) : [] }, json);
  return wait && delivery.status !== 'delivered' ? exitCodes.failed : exitCodes.done;
}

async function attempted(server: ServerClient, queued: Delivery): Promise<Delivery> {
  const endAt = performance.now() + patienceMs;
  let delivery = queued;
  while (delivery.attemptCount === 0) {
    if (performance.now() > endAt) {
      const message = `${queued.id} was not attempted within ${patienceMs / 1000} seconds; "comity deliveries show ${queued.id}" shows when it was`;
      throw new CommandFailure(message);
    }
    await delay(againMs);
    delivery = (await server.ask('GET', deliveryPath(queued.id))) as Delivery;
  }
  return delivery;
}

/**
 * `comity deliveries resend`: tries deliveries again at once. Attempts that are scheduled stay scheduled (§3). From here that works for
 * 30 days, from elsewhere for 15 (§6).
 */
import type { Delivery } from '../../model/delivery.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { deliveryPath } from './delivery-output.ts';

/** One that cannot be sent again does not keep the others from it; then the command fails at the end. */
export async function resendDeliveries(
  terminal: Terminal,
  ids: readonly string[],
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(terminal, options);
  const resent: Delivery[] = [];
  const failures: string[] = [];
  for (const id of ids) {
    try {
      const asked = { json: { via: 'command-line' }, subject: `delivery ${id}` };
      resent.push((await server.ask('POST', `${deliveryPath(id)}/resend`, asked)) as Delivery);
      if (!json) terminal.out(`${id} is sent again.`);
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      failures.push(ids.length === 1 ? error.message : `${id}: ${error.message}`);
    }
  }
  if (json) terminal.out(JSON.stringify(resent, undefined, 2));
  for (const failure of failures) terminal.err(`comity: ${failure}`);
  return failures.length > 0 ? exitCodes.failed : exitCodes.done;
}

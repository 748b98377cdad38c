/** Declares the subcommands of `comity deliveries`, whose code is loaded when one is called. */
import { type Command, Option } from 'commander';
import { deliveryStatuses } from '../../model/delivery.ts';
import type { Finish } from '../failure.ts';
import { wholeNumber } from '../option-values.ts';
import type { ServerArguments } from '../server-client.ts';
import { type Given, listItemsMax, webhookKeyHelp, withServer } from '../server-options.ts';
import type { Terminal } from '../terminal.ts';
import type { ListArguments } from './delivery-commands.ts';

export function declareDeliveries(program: Command, terminal: Terminal, finish: Finish): void {
  const deliveries = program
    .command('deliveries')
    .description('list the deliveries of webhooks, and resend them')
    .addHelpText('after', webhookKeyHelp);
  withServer(deliveries.command('list'))
    .description('list deliveries, the newest first')
    .option('--endpoint <id>', 'only those to one endpoint, ep_...')
    .addOption(new Option('--status <status>', 'only those in one state').choices(deliveryStatuses))
    .option('--event <id>', 'only those of one event, evt_...')
    .option('--type <type>', 'only those of one type of event, such as products.created')
    .option('--limit <number>', 'how many at most', wholeNumber(1, listItemsMax), 100)
    .action(async ({ json = false, ...options }: Given<ListArguments>) => {
      const { listDeliveries } = await import('./delivery-commands.ts');
      finish(await listDeliveries(terminal, options, json));
    });
  withServer(deliveries.command('show'))
    .description('show one delivery with its attempts')
    .argument('<id>', 'id of the delivery, dlv_...')
    .action(async (id: string, { json = false, ...options }: Given<ServerArguments>) => {
      const { showDelivery } = await import('./delivery-commands.ts');
      finish(await showDelivery(terminal, id, options, json));
    });
  withServer(deliveries.command('resend'))
    .description('retry deliveries at once, whatever their status; scheduled attempts stay')
    .argument('<id...>', 'ids of the deliveries, dlv_...')
    .addHelpText(
      'after',
      '\nWorks for 30 days after a delivery was created. Exits 1 if one of them was refused.',
    )
    .action(async (ids: readonly string[], { json = false, ...options }: Given<ServerArguments>) => {
      const { resendDeliveries } = await import('./delivery-commands.ts');
      finish(await resendDeliveries(terminal, ids, options, json));
    });
}

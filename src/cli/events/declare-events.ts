/** Declares the subcommands of `comity events`, whose code is loaded when one is called. */
import type { Command } from 'commander';
import type { Finish } from '../failure.ts';
import type { ServerArguments } from '../server-client.ts';
import { type Given, webhookKeyHelp, withServer } from '../server-options.ts';
import type { Terminal } from '../terminal.ts';
import type { TriggerArguments } from './event-commands.ts';

export function declareEvents(program: Command, terminal: Terminal, finish: Finish): void {
  const events = program
    .command('events')
    .description('post events to a running server, and list the types of events')
    .addHelpText('after', webhookKeyHelp);
  withServer(events.command('types'))
    .description('list the types of events; --json shows their schemas and samples')
    .action(async ({ json = false, ...options }: Given<ServerArguments>) => {
      const { listEventTypes } = await import('./event-commands.ts');
      finish(await listEventTypes(terminal, options, json));
    });
  withServer(events.command('trigger'))
    .description('post an event, and print its id')
    .argument('<type>', 'its type, such as products.created or invoice.paid')
    .option('--data <json>', 'its object: JSON, @file, or - for stdin (a sample)')
    .option('--set <path=value>', 'set a member of the object, such as price=10; repeatable', repeated)
    .option('--id <id>', 'its id; a repeated one is the same event')
    .option('--tenant <tenant>', 'its tenant')
    .action(async (type: string, { json = false, ...options }: Given<TriggerArguments>) => {
      const { triggerEvent } = await import('./event-commands.ts');
      finish(await triggerEvent(terminal, type, options, json));
    });
}

function repeated(written: string, before: readonly string[] = []): readonly string[] {
  return [...before, written];
}

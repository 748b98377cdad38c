/** Declares the subcommands of `comity received`, whose code is loaded when one is called. */
import { type Command, Option } from 'commander';
import { receivedStatuses } from '../../model/received.ts';
import type { Finish } from '../failure.ts';
import { wholeNumber } from '../option-values.ts';
import type { ServerArguments } from '../server-client.ts';
import { administratorKeyHelp, type Given, listItemsMax, withServer } from '../server-options.ts';
import type { Terminal } from '../terminal.ts';
import type { ListArguments, MarkArguments, ReplayArguments } from './received-commands.ts';

const idHelp = 'id of the message, rec_...';
const sinceHelp = 'only those received since: 2h or 7d ago, or an ISO 8601 time';

export function declareReceived(program: Command, terminal: Terminal, finish: Finish): void {
  const received = program
    .command('received')
    .description('list received webhooks, and hand them on again')
    .addHelpText('after', administratorKeyHelp);
  declareList(received, terminal, finish);
  declareOne(received, terminal, finish);
  declareReplay(received, terminal, finish);
  declareMark(received, terminal, finish);
}

function declareList(received: Command, terminal: Terminal, finish: Finish): void {
  withChoice(withServer(received.command('list')))
    .description('list received messages, the newest first')
    .option('--limit <number>', 'how many at most', wholeNumber(1, listItemsMax), 100)
    .action(async ({ json = false, ...options }: Given<ListArguments>) => {
      const { listReceived } = await import('./received-commands.ts');
      finish(await listReceived(terminal, options, json));
    });
}

function declareOne(received: Command, terminal: Terminal, finish: Finish): void {
  withServer(received.command('show'))
    .description('show one message with the attempts to hand it on')
    .argument('<id>', idHelp)
    .action(async (id: string, { json = false, ...options }: Given<ServerArguments>) => {
      const { showReceived } = await import('./received-commands.ts');
      finish(await showReceived(terminal, id, options, json));
    });
  withServer(received.command('body'))
    .description('write the content to stdout, as received; --json writes it as base64')
    .argument('<id>', idHelp)
    .action(async (id: string, { json = false, ...options }: Given<ServerArguments>) => {
      const { writeBody } = await import('./received-commands.ts');
      finish(await writeBody(terminal, id, options, json));
    });
  withServer(received.command('attempts'))
    .description('list the attempts to hand one message on, the oldest first')
    .argument('<id>', idHelp)
    .action(async (id: string, { json = false, ...options }: Given<ServerArguments>) => {
      const { listAttempts } = await import('./received-commands.ts');
      finish(await listAttempts(terminal, id, options, json));
    });
}

function declareReplay(received: Command, terminal: Terminal, finish: Finish): void {
  withChoice(withServer(received.command('replay')))
    .description('hand messages on again, by id, or all that the options select')
    .argument('[id...]', 'ids of the messages, rec_...')
    .option('--dry-run', 'only count')
    .option('--yes', 'do not ask for confirmation; without a terminal it never asks')
    .addHelpText(
      'after',
      '\nMessages that arrive after the command began are left out. Exits 1 if a named message was refused.' +
        '\nTheir handler gets the messages once more.',
    )
    .action(async (ids: readonly string[], { json = false, ...options }: Given<ReplayArguments>) => {
      const { replayReceived } = await import('./received-commands.ts');
      finish(await replayReceived(terminal, ids, options, json));
    });
}

function declareMark(received: Command, terminal: Terminal, finish: Finish): void {
  withServer(received.command('mark'))
    .description('set the status of a message; it is no longer handed on')
    .argument('<id>', idHelp)
    .addOption(
      new Option('--as <status>', 'its new status')
        .choices(receivedStatuses.filter((status) => status !== 'pending'))
        .makeOptionMandatory(),
    )
    .action(async (id: string, { json = false, ...options }: Given<MarkArguments>) => {
      const { markReceived } = await import('./received-commands.ts');
      finish(await markReceived(terminal, id, options, json));
    });
}

/** Adds the options that select messages. */
function withChoice(command: Command): Command {
  return command
    .option('--sender <name>', 'only those of one sender')
    .addOption(new Option('--status <status>', 'only those in one state').choices(receivedStatuses))
    .option('--type <type>', 'only those of one type, as named by their sender')
    .option('--since <time>', sinceHelp);
}

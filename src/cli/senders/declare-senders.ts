/** Declares the subcommands of `comity senders`, whose code is loaded when one is called. */

import { type Command, Option } from 'commander';
import { settings } from '../../config/settings.ts';
import type { Finish } from '../failure.ts';
import { wholeNumber } from '../option-values.ts';
import type { ServerArguments } from '../server-client.ts';
import { administratorKeyHelp, type Given, withServer } from '../server-options.ts';
import type { Terminal } from '../terminal.ts';
import type { RotateArguments } from './sender-commands.ts';

const nameHelp = 'name of the sender, as in its path';
/** The most that any server accepts. */
const overlapSecondsMax = settings.secretOverlapSecondsMax.most;

export function declareSenders(program: Command, terminal: Terminal, finish: Finish): void {
  const senders = program
    .command('senders')
    .description('see whose webhooks a running server receives, and change their secrets')
    .addHelpText('after', administratorKeyHelp);
  withServer(senders.command('list', { isDefault: true }))
    .description('list the declared senders')
    .action(async ({ json = false, ...options }: Given<ServerArguments>) => {
      const { listSenders } = await import('./sender-commands.ts');
      finish(await listSenders(terminal, options, json));
    });
  withServer(senders.command('show'))
    .description('show one sender; no secret is shown again')
    .argument('<name>', nameHelp)
    .action(async (name: string, { json = false, ...options }: Given<ServerArguments>) => {
      const { showSender } = await import('./sender-commands.ts');
      finish(await showSender(terminal, name, options, json));
    });
  withServer(senders.command('rotate-secret'))
    .description('put a new secret in the place of the old one, and print it once')
    .argument('<name>', nameHelp)
    .option(
      '--overlap-seconds <seconds>',
      'how long the old one is taken beside it (0)',
      wholeNumber(0, overlapSecondsMax),
    )
    .option('--secret-from-stdin', 'take the secret that the sender gave you from the first line of stdin')
    .addOption(
      new Option('--use <use>', 'what it is for: what comes, or what is forwarded (receive)').choices([
        'receive',
        'forward',
      ]),
    )
    .addHelpText('after', '\nA secret that a variable of the environment sets is changed there.')
    .action(async (name: string, { json = false, ...options }: Given<RotateArguments>) => {
      const { rotateSenderSecret } = await import('./sender-commands.ts');
      finish(await rotateSenderSecret(terminal, name, options, json));
    });
}

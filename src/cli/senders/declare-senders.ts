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
    .description('list the senders whose webhooks a running server receives, and change their secrets')
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
    .description('replace the secret, and print the new one once')
    .argument('<name>', nameHelp)
    .option(
      '--overlap-seconds <seconds>',
      'how long the old secret is also accepted (0)',
      wholeNumber(0, overlapSecondsMax),
    )
    .option('--secret-from-stdin', 'take the secret that the sender gave you from the first line of stdin')
    .addOption(
      new Option('--use <use>', 'for received or for forwarded messages (receive)').choices([
        'receive',
        'forward',
      ]),
    )
    .addHelpText('after', '\nA secret that an environment variable sets must be changed there.')
    .action(async (name: string, { json = false, ...options }: Given<RotateArguments>) => {
      const { rotateSenderSecret } = await import('./sender-commands.ts');
      finish(await rotateSenderSecret(terminal, name, options, json));
    });
}

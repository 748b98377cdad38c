/** Declares `comity listen`, whose code is loaded when it is called. */
import { type Command, Option } from 'commander';
import { schemes } from '../../model/endpoint.ts';
import type { Finish } from '../failure.ts';
import { commaList } from '../option-values.ts';
import { type Given, webhookKeyHelp, withServer } from '../server-options.ts';
import type { Terminal } from '../terminal.ts';
import type { ListenArguments } from './listen.ts';

export function declareListen(program: Command, terminal: Terminal, finish: Finish): void {
  withServer(program.command('listen'))
    .description('forward the events of a running server to a program on this machine, signed as webhooks')
    .requiredOption('--forward-to <url>', 'the program, such as http://127.0.0.1:3000/webhooks')
    .option('--events <patterns>', 'which events: products.created, products.* ... (*)', commaList)
    .addOption(new Option('--scheme <scheme>', 'how they are signed').choices(schemes).default('standard'))
    .option('--since <id>', 'begin after this event of the log, evt_... (now)')
    .addHelpText(
      'after',
      '\nThe secret is generated for this run and printed once, unless COMITY_LISTEN_SECRET is set.' +
        '\nForwards the events that the key may read. Ctrl-C ends it with exit code 0.' +
        webhookKeyHelp,
    )
    .action(async ({ json = false, ...options }: Given<ListenArguments>) => {
      const { listen } = await import('./listen.ts');
      finish(await listen(terminal, options, json));
    });
}

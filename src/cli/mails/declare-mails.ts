/** Declares the subcommands of `comity mails`, whose code is loaded when one is called. */
import { type Command, Option } from 'commander';
import { mailStatuses } from '../../model/kept-mail.ts';
import type { Finish } from '../failure.ts';
import { wholeNumber } from '../option-values.ts';
import type { ServerArguments } from '../server-client.ts';
import { administratorKeyHelp, type Given, listItemsMax, withServer } from '../server-options.ts';
import type { Terminal } from '../terminal.ts';
import type { ListArguments } from './mail-commands.ts';

export function declareMails(program: Command, terminal: Terminal, finish: Finish): void {
  const mails = program
    .command('mails')
    .description('list mails, and send failed ones again')
    .addHelpText('after', administratorKeyHelp);
  withServer(mails.command('list'))
    .description('list mails, the newest first')
    .addOption(new Option('--status <status>', 'only those in one state').choices(mailStatuses))
    .option('--template <name>', 'only those of one template')
    .option('--limit <number>', 'how many at most', wholeNumber(1, listItemsMax), 100)
    .action(async ({ json = false, ...options }: Given<ListArguments>) => {
      const { listMails } = await import('./mail-commands.ts');
      finish(await listMails(terminal, options, json));
    });
  withServer(mails.command('show'))
    .description('show one mail with what became of its recipients')
    .argument('<id>', 'id of the mail, mail_...')
    .action(async (id: string, { json = false, ...options }: Given<ServerArguments>) => {
      const { showMail } = await import('./mail-commands.ts');
      finish(await showMail(terminal, id, options, json));
    });
  withServer(mails.command('resend'))
    .description('send mails again at once, to the recipients that have not accepted them')
    .argument('<id...>', 'ids of the mails, mail_...')
    .addHelpText('after', '\nExits 1 if one of them was refused: the content of a sent mail is not kept.')
    .action(async (ids: readonly string[], { json = false, ...options }: Given<ServerArguments>) => {
      const { resendMails } = await import('./mail-commands.ts');
      finish(await resendMails(terminal, ids, options, json));
    });
}

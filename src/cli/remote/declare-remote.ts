/** The help of the commands that call a running server. What runs them, and the HTTP client, are loaded when one is called. */
import type { Command } from 'commander';
import { declareCommand, type OptionRow, yesOption } from '../declare-command.ts';
import type { Finish } from '../failure.ts';
import { wholeNumber } from '../option-values.ts';
import type { KeyUse } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import type { Noun, RemoteCommand, Use } from './remote-command.ts';

/** Enough for a terminal; a program that needs more uses the API. */
const listItemsMax = 100_000;

const limitOption: OptionRow = [
  '--limit <number>',
  'how many at most',
  { parse: wholeNumber(1, listItemsMax), value: 100 },
];

const keyHelp: Readonly<Record<KeyUse, string>> = {
  administrator: '\nUses the administrator key in COMITY_ADMIN_KEY.',
  webhooks: '\nUses the key in COMITY_KEY, which needs the scope webhooks, or the one in COMITY_ADMIN_KEY.',
  any: '\nUses the key in COMITY_KEY, or the one in COMITY_ADMIN_KEY, or none.',
};

const serverOptions: readonly OptionRow[] = [
  ['--url <url>', 'the running server (COMITY_URL; http://127.0.0.1:4000)'],
  ['--json', 'print JSON'],
];

/** Declares nouns, and commands without one. */
export function declareRemote(
  program: Command,
  terminal: Terminal,
  finish: Finish,
  declared: readonly (Noun | (RemoteCommand & Use))[],
): void {
  const declare = (parent: Command, command: RemoteCommand, use: Use): void =>
    declareCommand(parent, { ...command, options: optionsOf(command) }, async (given) => {
      const { runRemote } = await import('./run-remote.ts');
      finish(await runRemote(terminal, command, use, given));
    });
  for (const each of declared) {
    const help = keyHelp[each.key];
    if ('commands' in each) {
      const noun = program.command(each.name).description(each.description).addHelpText('after', help);
      for (const command of each.commands) declare(noun, command, each);
    } else declare(program, { ...each, help: `${each.help ?? ''}${help}` }, each);
  }
}

/** In the order of the help. */
function optionsOf({ options = [], confirms, lists }: RemoteCommand): readonly OptionRow[] {
  return [
    ...serverOptions,
    ...(confirms === undefined ? [] : [yesOption]),
    ...options,
    ...(lists === 'newest' ? [limitOption] : []),
  ];
}

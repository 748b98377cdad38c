/** The help of the commands that call a running server. What runs them, and the HTTP client, are loaded when one is called. */
import { type Command, Option } from 'commander';
import type { Finish } from '../failure.ts';
import { wholeNumber } from '../option-values.ts';
import type { KeyUse } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { type Noun, type OptionRow, type RemoteCommand, type Use, yesOption } from './remote-command.ts';

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

/** Declares nouns, and commands without one. */
export function declareRemote(
  program: Command,
  terminal: Terminal,
  finish: Finish,
  declared: readonly (Noun | (RemoteCommand & Use))[],
): void {
  for (const each of declared) {
    if ('commands' in each) {
      const noun = program.command(each.name).description(each.description);
      noun.addHelpText('after', keyHelp[each.key]);
      for (const command of each.commands) declareCommand(noun, command, each, terminal, finish);
    } else {
      const help = `${each.help ?? ''}${keyHelp[each.key]}`;
      declareCommand(program, { ...each, help }, each, terminal, finish);
    }
  }
}

function declareCommand(
  parent: Command,
  declared: RemoteCommand,
  use: Use,
  terminal: Terminal,
  finish: Finish,
): Command {
  const { name, isDefault = false, help } = declared;
  const command = parent.command(name, { isDefault }).description(declared.description);
  for (const [syntax, of] of declared.arguments ?? []) command.argument(syntax, of);
  command.option('--url <url>', 'the running server (COMITY_URL; http://127.0.0.1:4000)');
  command.option('--json', 'print JSON');
  const rows = optionRows(declared).map((row) => [optionOf(row), row[2]?.member] as const);
  for (const [option] of rows) command.addOption(option);
  if (help !== undefined) command.addHelpText('after', help);
  return command.action(async () => {
    const options: Readonly<Record<string, unknown>> = command.opts();
    const members = rows.flatMap(([option, member]) =>
      member === undefined ? [] : [[member, options[option.attributeName()]] as const],
    );
    const { runRemote } = await import('./run-remote.ts');
    const given = { names: command.processedArgs.flat(), options, members: Object.fromEntries(members) };
    finish(await runRemote(terminal, declared, use, given));
  });
}

/** In the order of the help. */
function optionRows({ options = [], confirms, lists }: RemoteCommand): readonly OptionRow[] {
  return [
    ...(confirms === undefined ? [] : [yesOption]),
    ...options,
    ...(lists === 'newest' ? [limitOption] : []),
  ];
}

function optionOf([flags, help, rule = {}]: OptionRow): Option {
  const option = new Option(flags, help).default(rule.value);
  if (rule.choices !== undefined) option.choices(rule.choices);
  if (rule.parse !== undefined) option.argParser(rule.parse as (written: string, before: unknown) => unknown);
  return option.makeOptionMandatory(rule.isRequired === true);
}

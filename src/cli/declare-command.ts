/** A command as its help shows it: a value, from which commander's command is made. */
import { type Command, Option } from 'commander';

export type DeclaredCommand = {
  readonly name: string;
  /** It also runs where the word before it stands alone. */
  readonly isDefault?: true;
  readonly description: string;
  readonly arguments?: readonly Argument[];
  readonly options?: readonly OptionRow[];
  /** Stands below the options. */
  readonly help?: string;
};

export type Argument = readonly [syntax: string, help: string, value?: string];

export type OptionRow = readonly [flags: string, help: string, rule?: OptionRule];

type OptionRule = {
  /** The member of a request's content, or the parameter of its query, that the option sets. */
  readonly member?: string;
  readonly choices?: readonly string[];
  readonly parse?: (written: string, before: never) => unknown;
  readonly value?: unknown;
  readonly isRequired?: true;
};

export type Given = {
  /** The arguments. */
  readonly names: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
  /** Set by options that have a member. */
  readonly members: Readonly<Record<string, unknown>>;
};

export const yesOption: OptionRow = [
  '--yes',
  'do not ask for confirmation; without a terminal it never asks',
];

export function declareCommand(
  parent: Command,
  declared: DeclaredCommand,
  run: (given: Given) => Promise<void>,
): void {
  const { name, isDefault = false, description, help } = declared;
  const command = parent.command(name, { isDefault }).description(description);
  for (const [syntax, of, value] of declared.arguments ?? []) command.argument(syntax, of, value);
  const rows = (declared.options ?? []).map((row) => [optionOf(row), row[2]?.member] as const);
  for (const [option] of rows) command.addOption(option);
  if (help !== undefined) command.addHelpText('after', help);
  command.action(() => {
    const options: Given['options'] = command.opts();
    const members = rows.flatMap(([option, member]) =>
      member === undefined ? [] : [[member, options[option.attributeName()]] as const],
    );
    return run({ names: command.processedArgs.flat(), options, members: Object.fromEntries(members) });
  });
}

function optionOf([flags, help, rule = {}]: OptionRow): Option {
  const option = new Option(flags, help).default(rule.value);
  if (rule.choices !== undefined) option.choices(rule.choices);
  if (rule.parse !== undefined) option.argParser(rule.parse as (written: string, before: unknown) => unknown);
  return option.makeOptionMandatory(rule.isRequired === true);
}

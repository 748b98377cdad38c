/** What the subcommands of `users` and `keys` have in common: they ask a running server. */
import type { Command } from 'commander';

/** Arguments as commander hands them over: those of every such subcommand, and its own. */
export type Given<T> = T & { readonly json?: boolean };

/** Nobody reads more on a terminal, and a program that needs more asks the API. */
export const listItemsMax = 100_000;

const urlHelp = 'the running server (COMITY_URL; http://127.0.0.1:4000)';

export function withServer(command: Command): Command {
  return command.option('--url <url>', urlHelp).option('--json', 'print JSON');
}

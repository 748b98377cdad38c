/** Options and help that the subcommands for a running server share. */
import type { Command } from 'commander';

/** Arguments from commander: `--json`, and the subcommand's own. */
export type Given<T> = T & { readonly json?: boolean };

/** Enough for a terminal; a program that needs more uses the API. */
export const listItemsMax = 100_000;

const urlHelp = 'the running server (COMITY_URL; http://127.0.0.1:4000)';

/** For commands that need no administrator. */
export const webhookKeyHelp =
  '\nUses the key in COMITY_KEY, which needs the scope webhooks, or the one in COMITY_ADMIN_KEY.';

/** For commands that need an administrator. */
export const administratorKeyHelp = '\nUses the administrator key in COMITY_ADMIN_KEY.';

export function withServer(command: Command): Command {
  return command.option('--url <url>', urlHelp).option('--json', 'print JSON');
}

/** Declares the subcommands of `comity keys`, whose code is loaded when one is called. */

import { type Command, Option } from 'commander';
import { settings } from '../../config/settings.ts';
import type { Finish } from '../failure.ts';
import { wholeNumber } from '../option-values.ts';
import { type Given, listItemsMax, withServer } from '../server-options.ts';
import type { Terminal } from '../terminal.ts';
import type { CreateArguments, ListArguments, RevokeArguments, RotateArguments } from './key-commands.ts';

/** The most that any server accepts. */
const overlapSecondsMax = settings.keyOverlapSecondsMax.most;

export function declareKeys(program: Command, terminal: Terminal, finish: Finish): void {
  const keys = program
    .command('keys')
    .description('create, rotate and revoke API keys on a running server')
    .addHelpText('after', '\nUses the administrator key in COMITY_ADMIN_KEY.');
  declareList(keys, terminal, finish);
  declareMaking(keys, terminal, finish);
  declareRevocation(keys, terminal, finish);
}

function declareList(keys: Command, terminal: Terminal, finish: Finish): void {
  withServer(keys.command('list'))
    .description('list all keys, the newest first')
    .option('--limit <number>', 'how many at most', wholeNumber(1, listItemsMax), 100)
    .action(async ({ json = false, ...options }: Given<ListArguments>) => {
      const { listKeys } = await import('./key-commands.ts');
      finish(await listKeys(terminal, options, json));
    });
}

function declareMaking(keys: Command, terminal: Terminal, finish: Finish): void {
  withServer(keys.command('create'))
    .description('create a key, and print it once')
    .argument('<name>', 'what it is for')
    .option('--publishable', 'a key that may be public, such as in a page: it can only read')
    .option('--scope <scope...>', 'scopes (read write)')
    .option('--expires <time>', 'when it ends: 30d, or a date (never)')
    .option('--tunnel-allow <hosts>', 'hosts that it may tunnel to: a.example,*.b.example (all)')
    .option('--tunnel-deny <hosts>', 'hosts that it may not, even if allowed (none)')
    .addOption(
      new Option('--tunnel-mode <mode>', 'report: refusals by the lists are only logged (enforce)').choices([
        'enforce',
        'report',
      ]),
    )
    .action(async (name: string, { json = false, ...options }: Given<CreateArguments>) => {
      const { createKey } = await import('./key-commands.ts');
      finish(await createKey(terminal, name, options, json));
    });
  withServer(keys.command('rotate'))
    .description('replace the text of the key, and print the new one once')
    .argument('<id>', 'id of the key, key_...')
    .option('--overlap <seconds>', 'how long the old text stays valid (0)', wholeNumber(0, overlapSecondsMax))
    .action(async (id: string, { json = false, ...options }: Given<RotateArguments>) => {
      const { rotateKey } = await import('./key-commands.ts');
      finish(await rotateKey(terminal, id, options, json));
    });
}

function declareRevocation(keys: Command, terminal: Terminal, finish: Finish): void {
  withServer(keys.command('revoke'))
    .description('revoke a key, and the keys made with it, immediately')
    .argument('<id>', 'id of the key, key_...')
    .option('--yes', 'do not ask for confirmation; without a terminal it never asks')
    .option('--disable-endpoints', 'disable the webhook endpoints that were made with it')
    .action(async (id: string, { json = false, ...options }: Given<RevokeArguments>) => {
      const { revokeKey } = await import('./key-commands.ts');
      finish(await revokeKey(terminal, id, options, json));
    });
}

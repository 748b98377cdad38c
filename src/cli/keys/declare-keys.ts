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
    .description('make, rotate and revoke API keys on a running server')
    .addHelpText('after', '\nSpeaks to the server with the administrator key in COMITY_ADMIN_KEY.');
  declareList(keys, terminal, finish);
  declareMaking(keys, terminal, finish);
  declareRevocation(keys, terminal, finish);
}

function declareList(keys: Command, terminal: Terminal, finish: Finish): void {
  withServer(keys.command('list'))
    .description('list the keys of everybody, the newest first')
    .option('--limit <number>', 'at most so many', wholeNumber(1, listItemsMax), 100)
    .action(async ({ json = false, ...options }: Given<ListArguments>) => {
      const { listKeys } = await import('./key-commands.ts');
      finish(await listKeys(terminal, options, json));
    });
}

function declareMaking(keys: Command, terminal: Terminal, finish: Finish): void {
  withServer(keys.command('create'))
    .description('make a key, and print it once')
    .argument('<name>', 'what it is for')
    .option('--publishable', 'a key that may stand in a page: it reads, and nothing else')
    .option('--scope <scope...>', 'scopes (read write)')
    .option('--expires <time>', 'when it ends: 30d, or a date (never)')
    .option('--tunnel-allow <hosts>', 'hosts that it may tunnel to: a.example,*.b.example (all)')
    .option('--tunnel-deny <hosts>', 'hosts that it may not, whatever is allowed (none)')
    .addOption(
      new Option('--tunnel-mode <mode>', 'report: what the lists refuse is only logged (enforce)').choices([
        'enforce',
        'report',
      ]),
    )
    .action(async (name: string, { json = false, ...options }: Given<CreateArguments>) => {
      const { createKey } = await import('./key-commands.ts');
      finish(await createKey(terminal, name, options, json));
    });
  withServer(keys.command('rotate'))
    .description('put a new text in the place of the old one, and print it once')
    .argument('<id>', 'id of the key, key_...')
    .option('--overlap <seconds>', 'how long the old text stays good (0)', wholeNumber(0, overlapSecondsMax))
    .action(async (id: string, { json = false, ...options }: Given<RotateArguments>) => {
      const { rotateKey } = await import('./key-commands.ts');
      finish(await rotateKey(terminal, id, options, json));
    });
}

function declareRevocation(keys: Command, terminal: Terminal, finish: Finish): void {
  withServer(keys.command('revoke'))
    .description('revoke a key, and the keys made with it, immediately')
    .argument('<id>', 'id of the key, key_...')
    .option('--yes', 'do not ask; without a terminal it never asks')
    .option('--disable-endpoints', 'disable the webhook endpoints that were made with it')
    .action(async (id: string, { json = false, ...options }: Given<RevokeArguments>) => {
      const { revokeKey } = await import('./key-commands.ts');
      finish(await revokeKey(terminal, id, options, json));
    });
}

/** Declares the subcommands of `comity endpoints`, whose code is loaded when one is called. */

import { type Command, Option } from 'commander';
import { settings } from '../../config/settings.ts';
import { modes, schemes } from '../../model/endpoint.ts';
import type { Finish } from '../failure.ts';
import { commaList, wholeNumber } from '../option-values.ts';
import type { ServerArguments } from '../server-client.ts';
import { type Given, listItemsMax, webhookKeyHelp, withServer } from '../server-options.ts';
import type { Terminal } from '../terminal.ts';

import type {
  CreateArguments,
  DeleteArguments,
  ListArguments,
  RecoverArguments,
  RotateArguments,
  TestArguments,
} from './endpoint-commands.ts';

const idHelp = 'id of the endpoint, ep_...';
/** The most that any server accepts. */
const overlapSecondsMax = settings.secretOverlapSecondsMax.most;

/** The server has its own bounds. */
const rateMax = 100_000;
const inFlightMax = 1024;

export function declareEndpoints(program: Command, terminal: Terminal, finish: Finish): void {
  const endpoints = program
    .command('endpoints')
    .description('say where webhooks are sent, on a running server')
    .addHelpText('after', webhookKeyHelp);
  declareReading(endpoints, terminal, finish);
  declareMaking(endpoints, terminal, finish);
  declareState(endpoints, terminal, finish);
  declareRemoval(endpoints, terminal, finish);
  declareSending(endpoints, terminal, finish);
}

function declareReading(endpoints: Command, terminal: Terminal, finish: Finish): void {
  withServer(endpoints.command('list'))
    .description('list endpoints, the newest first')
    .option('--limit <number>', 'at most so many', wholeNumber(1, listItemsMax), 100)
    .action(async ({ json = false, ...options }: Given<ListArguments>) => {
      const { listEndpoints } = await import('./endpoint-commands.ts');
      finish(await listEndpoints(terminal, options, json));
    });
  withServer(endpoints.command('show'))
    .description('show one endpoint')
    .argument('<id>', idHelp)
    .action(async (id: string, { json = false, ...options }: Given<ServerArguments>) => {
      const { showEndpoint } = await import('./endpoint-commands.ts');
      finish(await showEndpoint(terminal, id, options, json));
    });
}

function declareMaking(endpoints: Command, terminal: Terminal, finish: Finish): void {
  withServer(endpoints.command('create'))
    .description('make an endpoint, and print its secret once')
    .requiredOption('--to <url>', 'where events are sent')
    .option('--events <patterns>', 'which events: products.created, products.* ... (*)', commaList)
    .addOption(new Option('--scheme <scheme>', 'how they are signed (standard)').choices(schemes))
    .addOption(new Option('--mode <mode>', 'with --scheme timestamped: how long it is tried').choices(modes))
    .option('--tenant <tenant>', 'only events of this tenant')
    .option('--description <text>', 'what it is for')
    .option('--header <field...>', 'sent with every delivery, as "Name: value"')
    .option('--max-in-flight <number>', 'attempts under way at once', wholeNumber(1, inFlightMax))
    .option('--rate <number>', 'attempts that begin in a second, at most', wholeNumber(1, rateMax))
    .action(async ({ json = false, ...options }: Given<CreateArguments>) => {
      const { createEndpoint } = await import('./endpoint-commands.ts');
      finish(await createEndpoint(terminal, options, json));
    });
  withServer(endpoints.command('rotate-secret'))
    .description('put a new secret in the place of the old one, and print it once')
    .argument('<id>', idHelp)
    .option(
      '--overlap <seconds>',
      'how long the old one goes on signing beside it (0)',
      wholeNumber(0, overlapSecondsMax),
    )
    .action(async (id: string, { json = false, ...options }: Given<RotateArguments>) => {
      const { rotateSecret } = await import('./endpoint-commands.ts');
      finish(await rotateSecret(terminal, id, options, json));
    });
}

function declareState(endpoints: Command, terminal: Terminal, finish: Finish): void {
  for (const [command, status, description] of [
    ['enable', 'enabled', 'send again, what has waited first'],
    ['disable', 'disabled', 'send nothing until it is enabled; what waits is kept'],
  ] as const) {
    withServer(endpoints.command(command))
      .description(description)
      .argument('<id>', idHelp)
      .action(async (id: string, { json = false, ...options }: Given<ServerArguments>) => {
        const { setEndpointStatus } = await import('./endpoint-commands.ts');
        finish(await setEndpointStatus(terminal, id, status, options, json));
      });
  }
}

function declareRemoval(endpoints: Command, terminal: Terminal, finish: Finish): void {
  withServer(endpoints.command('delete'))
    .description('remove an endpoint; its deliveries stay in the log')
    .argument('<id>', idHelp)
    .option('--yes', 'do not ask; without a terminal it never asks')
    .action(async (id: string, { json = false, ...options }: Given<DeleteArguments>) => {
      const { deleteEndpoint } = await import('./endpoint-commands.ts');
      finish(await deleteEndpoint(terminal, id, options, json));
    });
}

function declareSending(endpoints: Command, terminal: Terminal, finish: Finish): void {
  withServer(endpoints.command('test'))
    .description('send one event to one endpoint, and show what it answered')
    .argument('<id>', idHelp)
    .option('--type <type>', 'a sample of this type (endpoint.test)')
    .option('--no-wait', 'do not wait for the answer')
    .addHelpText('after', '\nExits 1 when it was not accepted.')
    .action(async (id: string, { json = false, ...options }: Given<TestArguments>) => {
      const { testEndpoint } = await import('./endpoint-commands.ts');
      finish(await testEndpoint(terminal, id, options, json));
    });
  withServer(endpoints.command('recover'))
    .description('send again what an endpoint missed')
    .argument('<id>', idHelp)
    .requiredOption('--since <time>', 'from when on: 2h or 7d ago, or a time as ISO 8601 writes it')
    .option('--until <time>', 'up to when (now)')
    .option('--dry-run', 'only count')
    .option('--no-wait', 'do not follow it to its end')
    .addHelpText('after', '\nThe server goes on when this command is interrupted.')
    .action(async (id: string, { json = false, ...options }: Given<RecoverArguments>) => {
      const { recoverEndpoint } = await import('./endpoint-commands.ts');
      finish(await recoverEndpoint(terminal, id, options, json));
    });
}

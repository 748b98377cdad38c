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
    .description('manage the endpoints that a running server sends webhooks to')
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
    .option('--limit <number>', 'how many at most', wholeNumber(1, listItemsMax), 100)
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
    .description('create an endpoint, and print its secret once')
    .requiredOption('--to <url>', 'where events are sent')
    .option('--events <patterns>', 'which events: products.created, products.* ... (*)', commaList)
    .addOption(new Option('--scheme <scheme>', 'how they are signed (standard)').choices(schemes))
    .addOption(
      new Option('--mode <mode>', 'with --scheme timestamped: how long deliveries are retried').choices(
        modes,
      ),
    )
    .option('--signatures <versions>', 'with --scheme standard: v1, or v1,v1a (v1,v1a)', commaList)
    .option('--tenant <tenant>', 'only events of this tenant')
    .option('--description <text>', 'what it is for')
    .option('--header <field...>', 'sent with every delivery, as "Name: value"')
    .option('--max-in-flight <number>', 'attempts at the same time, at most', wholeNumber(1, inFlightMax))
    .option('--rate <number>', 'attempts per second, at most', wholeNumber(1, rateMax))
    .action(async ({ json = false, ...options }: Given<CreateArguments>) => {
      const { createEndpoint } = await import('./endpoint-commands.ts');
      finish(await createEndpoint(terminal, options, json));
    });
  withServer(endpoints.command('rotate-secret'))
    .description('replace the secret, and print the new one once')
    .argument('<id>', idHelp)
    .option(
      '--overlap <seconds>',
      'how long the old secret also signs (0)',
      wholeNumber(0, overlapSecondsMax),
    )
    .action(async (id: string, { json = false, ...options }: Given<RotateArguments>) => {
      const { rotateSecret } = await import('./endpoint-commands.ts');
      finish(await rotateSecret(terminal, id, options, json));
    });
}

function declareState(endpoints: Command, terminal: Terminal, finish: Finish): void {
  for (const [command, status, description] of [
    ['enable', 'enabled', 'send again, waiting deliveries first'],
    ['disable', 'disabled', 'send nothing until it is enabled; deliveries wait'],
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
    .option('--yes', 'do not ask for confirmation; without a terminal it never asks')
    .action(async (id: string, { json = false, ...options }: Given<DeleteArguments>) => {
      const { deleteEndpoint } = await import('./endpoint-commands.ts');
      finish(await deleteEndpoint(terminal, id, options, json));
    });
}

function declareSending(endpoints: Command, terminal: Terminal, finish: Finish): void {
  withServer(endpoints.command('test'))
    .description('send one event to one endpoint, and show its response')
    .argument('<id>', idHelp)
    .option('--type <type>', 'a sample of this type (endpoint.test)')
    .option('--no-wait', 'do not wait for the response')
    .addHelpText('after', '\nExits 1 if the endpoint did not accept it.')
    .action(async (id: string, { json = false, ...options }: Given<TestArguments>) => {
      const { testEndpoint } = await import('./endpoint-commands.ts');
      finish(await testEndpoint(terminal, id, options, json));
    });
  withServer(endpoints.command('recover'))
    .description('resend what an endpoint missed')
    .argument('<id>', idHelp)
    .requiredOption('--since <time>', 'start: 2h or 7d ago, or an ISO 8601 time')
    .option('--until <time>', 'end (now)')
    .option('--dry-run', 'only count')
    .option('--no-wait', 'do not wait until it ends')
    .addHelpText('after', '\nThe server continues if this command is interrupted.')
    .action(async (id: string, { json = false, ...options }: Given<RecoverArguments>) => {
      const { recoverEndpoint } = await import('./endpoint-commands.ts');
      finish(await recoverEndpoint(terminal, id, options, json));
    });
}

/** Declares `comity subscribers` and `comity jobs`, whose code is loaded when one is called. */
import type { Command } from 'commander';
import type { Finish } from '../failure.ts';
import { wholeNumber } from '../option-values.ts';
import type { ServerArguments } from '../server-client.ts';
import { administratorKeyHelp, type Given, withServer } from '../server-options.ts';
import type { Terminal } from '../terminal.ts';
import type { ReplayEventsArguments } from './function-commands.ts';

const replayMost = 1_000_000;

export function declareSubscribers(program: Command, terminal: Terminal, finish: Finish): void {
  const subscribers = program
    .command('subscribers')
    .description('list the subscribers of a running server, and give them events again')
    .addHelpText('after', administratorKeyHelp);
  withServer(subscribers.command('list', { isDefault: true }))
    .description('list the declared subscribers and how far they are')
    .action(async ({ json = false, ...options }: Given<ServerArguments>) => {
      const { listSubscribers } = await import('./function-commands.ts');
      finish(await listSubscribers(terminal, options, json));
    });
  withServer(subscribers.command('replay'))
    .description('give a subscriber the events of the log again, from a time on')
    .argument('<name>', 'name of the subscriber, as in the configuration')
    .requiredOption('--since <time>', 'events since then: 2h or 7d ago, or an ISO 8601 time')
    .option('--until <time>', 'events until then (now)')
    .option('--limit <number>', 'how many at most', wholeNumber(1, replayMost))
    .addHelpText('after', '\nThe subscriber gets events again that it has handled.')
    .action(async (name: string, { json = false, ...options }: Given<ReplayEventsArguments>) => {
      const { replayEvents } = await import('./function-commands.ts');
      finish(await replayEvents(terminal, name, options, json));
    });
}

export function declareJobs(program: Command, terminal: Terminal, finish: Finish): void {
  const jobs = program
    .command('jobs')
    .description('list the jobs of a running server, and run them')
    .addHelpText('after', administratorKeyHelp);
  withServer(jobs.command('list', { isDefault: true }))
    .description('list the declared jobs, with their next time and their last run')
    .action(async ({ json = false, ...options }: Given<ServerArguments>) => {
      const { listJobs } = await import('./function-commands.ts');
      finish(await listJobs(terminal, options, json));
    });
  withServer(jobs.command('run'))
    .description('run a job now; "comity received show" with the printed id tells how it went')
    .argument('<name>', 'name of the job, as in the configuration')
    .action(async (name: string, { json = false, ...options }: Given<ServerArguments>) => {
      const { runJob } = await import('./function-commands.ts');
      finish(await runJob(terminal, name, options, json));
    });
}

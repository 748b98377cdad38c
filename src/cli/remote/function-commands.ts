/** `comity subscribers` and `comity jobs`: functions of the application, declared in its configuration. */
import type { ShownJob } from '../../jobs/job-routes.ts';
import type { Replayed, ShownSubscriber } from '../../subscribers/subscriber-routes.ts';
import { pastTime, wholeNumber } from '../option-values.ts';
import { columns } from '../table.ts';
import type { Call, Noun, Printed } from './run-remote.ts';

const replayMost = 1_000_000;

export const subscribers: Noun = {
  name: 'subscribers',
  description: 'list the subscribers of a running server, and give them events again',
  key: 'administrator',
  thing: 'subscriber',
  commands: [
    {
      name: 'list',
      isDefault: true,
      description: 'list the declared subscribers and how far they are',
      request: 'GET /subscribers',
      lists: 'all',
      table: columns<ShownSubscriber>({
        NAME: 'name',
        EVENTS: ({ events }) => events.join(' '),
        PENDING: 'pending',
        FAILED: 'failed',
        LAG: ({ lagSeconds }) => `${Math.round(lagSeconds)} s`,
      }),
      none: 'No subscribers are declared.',
    },
    {
      name: 'replay',
      description: 'give a subscriber the events of the log again, from a time on',
      arguments: [['<name>', 'name of the subscriber, as in the configuration']],
      options: [
        [
          '--since <time>',
          'events since then: 2h or 7d ago, or an ISO 8601 time',
          { member: 'since', isRequired: true, parse: (text) => pastTime('--since', text) },
        ],
        [
          '--until <time>',
          'events until then (now)',
          { member: 'until', parse: (text) => pastTime('--until', text) },
        ],
        ['--limit <number>', 'how many at most', { parse: wholeNumber(1, replayMost) }],
      ],
      help: '\nThe subscriber gets events again that it has handled.',
      run: replayEvents,
    },
  ],
};

/** Asks as often as the server's bound of one request requires. */
async function replayEvents({
  server,
  names: [name = ''],
  options: { limit = Number.POSITIVE_INFINITY },
  members,
}: Call<{ readonly limit?: number }>): Promise<Printed> {
  const { since, until = new Date().toISOString() } = members;
  const path = `/subscribers/${encodeURIComponent(name)}/replay`;
  let replayed = 0;
  let last: string | null = null;
  for (let more = true; more && replayed < limit; ) {
    const left = limit - replayed;
    const json = {
      ...{ since, until, after: last ?? undefined },
      limit: Number.isFinite(left) ? left : undefined,
    };
    const subject = `subscriber ${name}`;
    const answer = (await server().ask('POST', path, { json, subject })) as Replayed;
    replayed += answer.replayed;
    more = answer.more;
    last = answer.lastEvent;
  }
  return {
    json: { subscriber: name, replayed, lastEvent: last },
    text: `${replayed} ${replayed === 1 ? 'event is' : 'events are'} given to ${name} again.`,
  };
}

export const jobs: Noun = {
  name: 'jobs',
  description: 'list the jobs of a running server, and run them',
  key: 'administrator',
  thing: 'job',
  commands: [
    {
      name: 'list',
      isDefault: true,
      description: 'list the declared jobs, with their next time and their last run',
      request: 'GET /jobs',
      lists: 'all',
      table: columns<ShownJob>({
        NAME: 'name',
        TIMES: ({ cron, timeZone, everySeconds }) =>
          cron === null ? `every ${everySeconds} s` : `${cron} ${timeZone}`,
        'NEXT RUN': 'nextRunAt',
        'LAST RUN': 'lastRunAt',
        STATUS: 'lastStatus',
        'LAST ERROR': ({ lastErrorMessage, lastError }) => lastErrorMessage ?? lastError,
      }),
      none: 'No jobs are declared.',
    },
    {
      name: 'run',
      description: 'run a job now; "comity received show" with the printed id tells how it went',
      arguments: [['<name>', 'name of the job, as in the configuration']],
      request: 'POST /jobs/{name}/run',
      content: {},
      print: ({ id }: { readonly id: string }, { names: [name] }: Call) => `${name} runs as ${id}.`,
    },
  ],
};

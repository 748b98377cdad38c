/** `comity subscribers` and `comity jobs`, with their subcommands. */
import { exitCodes } from '../failure.ts';
import { pastTime } from '../option-values.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { tableText, tellList } from '../table.ts';
import type { Terminal } from '../terminal.ts';

/** As served. */
type Subscriber = {
  readonly name: string;
  readonly events: readonly string[];
  readonly pending: number;
  readonly failed: number;
  readonly lagSeconds: number;
};

/** More than a configuration can declare. */
const functionsMax = 1000;

export async function listSubscribers(
  terminal: Terminal,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const listed = await openServer(terminal, options).list<Subscriber>('/subscribers', functionsMax);
  tellList(terminal, listed, json, { text: subscribersText, none: 'No subscribers are declared.' });
  return exitCodes.done;
}

function subscribersText(subscribers: readonly Subscriber[]): string {
  const rows = subscribers.map(({ name, events, pending, failed, lagSeconds }) => [
    ...[name, events.join(' '), String(pending), String(failed), `${Math.round(lagSeconds)} s`],
  ]);
  return tableText([['NAME', 'EVENTS', 'PENDING', 'FAILED', 'LAG'], ...rows]);
}

export type ReplayEventsArguments = ServerArguments & {
  readonly since: string;
  readonly until?: string;
  readonly limit?: number;
};

type Replayed = { readonly replayed: number; readonly more: boolean; readonly lastEvent: string | null };

/** Asks as often as the server's bound of one request requires. */
export async function replayEvents(
  terminal: Terminal,
  name: string,
  { since, until, limit = Number.POSITIVE_INFINITY, ...options }: ReplayEventsArguments,
  json: boolean,
): Promise<number> {
  const now = Date.now();
  const span = {
    since: pastTime('--since', since, now),
    until: until === undefined ? new Date(now).toISOString() : pastTime('--until', until, now),
  };
  const server = openServer(terminal, options);
  let replayed = 0;
  let last: string | null = null;
  for (let more = true; more && replayed < limit; ) {
    const left = limit - replayed;
    const answer = (await server.ask('POST', `/subscribers/${encodeURIComponent(name)}/replay`, {
      json: {
        ...span,
        ...(last === null ? {} : { after: last }),
        ...(Number.isFinite(left) ? { limit: left } : {}),
      },
      subject: `subscriber ${name}`,
    })) as Replayed;
    replayed += answer.replayed;
    more = answer.more;
    last = answer.lastEvent;
  }
  const text = `${replayed} ${replayed === 1 ? 'event is' : 'events are'} given to ${name} again.`;
  terminal.out(json ? JSON.stringify({ subscriber: name, replayed, lastEvent: last }, undefined, 2) : text);
  return exitCodes.done;
}

/** As served. */
type Job = {
  readonly name: string;
  readonly cron: string | null;
  readonly timeZone: string | null;
  readonly everySeconds: number | null;
  readonly nextRunAt: string | null;
  readonly lastRunAt: string | null;
  readonly lastStatus: string | null;
  readonly lastError: string | null;
  readonly lastErrorMessage: string | null;
};

export async function listJobs(terminal: Terminal, options: ServerArguments, json: boolean): Promise<number> {
  const listed = await openServer(terminal, options).list<Job>('/jobs', functionsMax);
  tellList(terminal, listed, json, { text: jobsText, none: 'No jobs are declared.' });
  return exitCodes.done;
}

function jobsText(jobs: readonly Job[]): string {
  const rows = jobs.map((job) => [
    ...[job.name, job.cron === null ? `every ${job.everySeconds} s` : `${job.cron} ${job.timeZone}`],
    ...[job.nextRunAt ?? '', job.lastRunAt ?? '', job.lastStatus ?? ''],
    job.lastErrorMessage ?? job.lastError ?? '',
  ]);
  return tableText([['NAME', 'TIMES', 'NEXT RUN', 'LAST RUN', 'STATUS', 'LAST ERROR'], ...rows]);
}

export async function runJob(
  terminal: Terminal,
  name: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const run = (await openServer(terminal, options).ask('POST', `/jobs/${encodeURIComponent(name)}/run`, {
    json: {},
    subject: `job ${name}`,
  })) as { readonly id: string };
  terminal.out(json ? JSON.stringify(run, undefined, 2) : `${name} runs as ${run.id}.`);
  return exitCodes.done;
}

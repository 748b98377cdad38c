/** `/jobs`: the declared jobs with their times, and a run on request, for administrators. Their runs are at `/received`. */
import { Type } from 'typebox';
import type { Configuration } from '../config/configuration.ts';
import type { DeclaredJob } from '../config/jobs.ts';
import { actionResource } from '../kernel/action.ts';
import { type Item, json, named, pageSchema, pathParameter, type Tag } from '../kernel/documentation.ts';
import type { Resource } from '../kernel/resource.ts';
import { type Permission, permission } from '../model/access.ts';
import { idFor } from '../model/id.ts';
import type { Principal } from '../model/principal.ts';
import type { Received } from '../model/received.ts';
import type { Services } from '../store/capabilities.ts';
import { tryCommit } from '../store/lines.ts';
import { Overtaken, type Store } from '../store/store.ts';
import {
  type ReceivedAttempt,
  receivedAttemptsTable,
  receivedCollection,
} from '../webhooks/receiving/received-tables.ts';
import {
  type DeclaredItem,
  declaredList,
  missing,
  shown,
  shownResource,
} from '../webhooks/routes/declared-resources.ts';
import { attemptId } from '../work/settlement.ts';
import {
  type JobState,
  jobStatesTable,
  runChanges,
  stateChange,
  stateOf,
  type WakeSource,
} from './scheduler.ts';

type DeclaredJobs = Pick<Configuration, 'base' | 'jobs'>;

export type ShownJob = {
  readonly name: string;
  readonly description: string;
  readonly cron: string | null;
  readonly timeZone: string | null;
  readonly everySeconds: number | null;
  readonly ifMissed: 'run' | 'skip';
  readonly nextRunAt: string | null;
  readonly lastRunAt: string | null;
  readonly lastStatus: Received['status'] | null;
  readonly lastError: string | null;
  readonly lastErrorMessage: string | null;
  readonly lastRun: string | null;
};

const tag: Tag = { name: 'jobs', description: 'The declared jobs and their times.', audience: 'operator' };
const nameParameter = pathParameter('name', 'Name of the job, as in the configuration.');
const textOrNull = ['string', 'null'];
const timeOrNull = { type: textOrNull, format: 'date-time' };

/** The members that a list shows come first. */
const jobSchema = named('Job', {
  description: 'A declared job.',
  type: 'object',
  properties: {
    name: { type: 'string' },
    cron: { type: textOrNull, description: 'Null: the job has a period.' },
    nextRunAt: timeOrNull,
    lastRunAt: { ...timeOrNull, description: 'Time at which the last run was due, or requested.' },
    lastStatus: {
      enum: ['pending', 'processed', 'failed', null],
      description: 'Of the last run; null: there was none, or it is no longer kept.',
    },
    lastError: { type: textOrNull, description: 'Kind of the last failure, as of a received message.' },
    lastErrorMessage: {
      type: textOrNull,
      description: 'The last failure in words, with its place in the configuration.',
    },
    lastRun: { type: textOrNull, description: 'Id of the received message that is the last run.' },
    description: { type: 'string' },
    timeZone: { type: textOrNull },
    everySeconds: { type: ['integer', 'null'], description: 'Null: the job has a cron expression.' },
    ifMissed: { enum: ['run', 'skip'] },
  },
  required: [
    ...['name', 'description', 'cron', 'timeZone', 'everySeconds', 'ifMissed', 'nextRunAt'],
    ...['lastRunAt', 'lastStatus', 'lastError', 'lastErrorMessage', 'lastRun'],
  ],
});

const jobExample: ShownJob = {
  name: 'closeSolved',
  description: 'Closes tickets that were solved a week ago.',
  cron: '0 3 * * *',
  timeZone: 'Europe/Berlin',
  everySeconds: null,
  ifMissed: 'run',
  nextRunAt: '2026-08-02T01:00:00.000Z',
  lastRunAt: '2026-08-01T01:00:00.012Z',
  lastStatus: 'processed',
  lastError: null,
  lastErrorMessage: null,
  lastRun: 'rec_01k1jx7v2mh5s8b4c9d0e6f3ga',
};

export function jobResources(
  services: Services,
  { base, jobs }: DeclaredJobs,
  wake: WakeSource,
): readonly Resource[] {
  const { store, settings } = services;
  const path = `${base}/jobs`;
  const items = (): Promise<readonly DeclaredItem[]> =>
    Promise.all([...jobs.values()].map(async (job) => ({ name: job.name, text: await textOf(store, job) })));
  return [
    declaredList(path, mayRead, items, settings, {
      ...{ name: 'Jobs', tag },
      list: {
        id: 'listJobs',
        summary: 'List the declared jobs',
        gives: {
          representation: json(pageSchema('Jobs', 'A page of declared jobs.', jobSchema), {
            items: [jobExample],
            nextCursor: null,
          }),
        },
      },
    }),
    shownResource(
      `${path}/{name}`,
      mayRead,
      async ({ captures: [name = ''] }) => {
        const job = jobs.get(name);
        return job === undefined ? missing : shown(await textOf(store, job));
      },
      {
        ...{ name: 'Job', tag, parameters: [nameParameter] },
        read: {
          id: 'readJob',
          summary: 'Read a job',
          gives: { representation: json(jobSchema, jobExample) },
        },
      },
    ),
    runResource(services, { base, jobs }, wake),
  ];
}

function mayRead(principal: Principal): Permission {
  return permission('administrator', 'read', principal);
}

async function textOf(store: Store, job: DeclaredJob): Promise<string> {
  const { name, description, timing, ifMissed } = job;
  const row = await store.read(jobStatesTable, name);
  const state = row === undefined ? undefined : stateOf(row);
  const lastRun = state?.lastRun ?? null;
  const last = lastRun === null ? undefined : await store.read(receivedCollection.name, lastRun);
  const message = last === undefined ? undefined : (JSON.parse(last.doc) as Received);
  const item: ShownJob = {
    ...{ name, description },
    ...('everyMs' in timing
      ? { cron: null, timeZone: null, everySeconds: timing.everyMs / 1000 }
      : { cron: timing.cron, timeZone: timing.timeZone, everySeconds: null }),
    ...{ ifMissed, nextRunAt: state?.nextRunAt ?? null, lastRunAt: state?.lastRunAt ?? null },
    ...{ lastStatus: message?.status ?? null, lastError: message?.lastError ?? null },
    ...{ lastErrorMessage: await lastErrorMessage(store, message), lastRun },
  };
  return JSON.stringify(item);
}

/** The error of the last attempt, while the log of attempts has it. */
async function lastErrorMessage(
  store: Pick<Store, 'read'>,
  message: Received | undefined,
): Promise<string | null> {
  if (message === undefined || message.lastError === null) return null;
  const row = await store.read(receivedAttemptsTable, attemptId(message.id, message.attempts));
  return row === undefined ? null : (JSON.parse(row.doc) as ReceivedAttempt).message;
}

const runContent: Item = {
  type: 'object',
  properties: {
    job: { type: 'string' },
    id: { type: 'string' },
    scheduledAt: { type: 'string', format: 'date-time' },
  },
  required: ['job', 'id', 'scheduledAt'],
};

function runResource(services: Services, { base, jobs }: DeclaredJobs, wake: WakeSource): Resource {
  return actionResource(
    {
      path: `${base}/jobs/{name}/run`,
      parameters: [nameParameter],
      tag,
      id: 'runJob',
      summary: 'Run a job now',
      description:
        'The job runs after the response, and after a run that is under way. Location names the received message that is the run. Its next time does not change.',
      input: { name: 'JobRun', schema: Type.Object({}), example: {}, optional: true },
      output: {
        schema: runContent,
        example: {
          job: 'closeSolved',
          id: 'rec_01k1jx7v2mh5s8b4c9d0e6f3ga',
          scheduledAt: '2026-08-01T09:30:00.000Z',
        },
      },
      answers: 'queued',
      codes: [],
      permission: (principal) => permission('administrator', 'update', principal),
      standing: ({ captures: [name = ''] }) => {
        const exists = jobs.has(name);
        return { exists, visible: exists, permitted: exists };
      },
      mayBeMissing: true,
      changes: ({ captures: [name = ''] }) => ({ table: jobStatesTable, id: name }),
      handler: async ({ captures: [name = ''] }) => {
        const job = jobs.get(name);
        if (job === undefined) return { refused: { code: 'not_found' } };
        const ran = await run(services, job);
        if (ran instanceof Overtaken) return ran;
        wake(job.source.name);
        return { content: ran, queued: `${base}/received/${ran.id}` };
      },
    },
    services.settings,
  );
}

type Requested = { readonly job: string; readonly id: string; readonly scheduledAt: string };

async function run({ store, clock, newId }: Services, job: DeclaredJob): Promise<Requested | Overtaken> {
  const now = clock();
  const id = idFor('message', newId);
  const scheduledAt = new Date(now).toISOString();
  const row = await store.read(jobStatesTable, job.name);
  const changes = [...runChanges(job, { id, scheduledAt, type: 'manual', now })];
  if (row !== undefined) {
    const state: JobState = { ...stateOf(row), lastRun: id, lastRunAt: scheduledAt };
    changes.unshift(stateChange(job, row, state, now));
  }
  const commit = await tryCommit(store, { changes, events: [] });
  return commit instanceof Overtaken ? commit : { job: job.name, id, scheduledAt };
}

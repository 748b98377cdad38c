/**
 * Findings that need a person now, from lists and reports that the caller may read: each finding is a sentence with its number, the time since when,
 * and the page that mends it. Every read is of a bounded number of rows that an index has together.
 */
import { useEffect, useState } from 'preact/hooks';
import type {
  Activity,
  Delivery,
  Endpoint,
  EndpointHealth,
  Hold,
  Program,
  ReceivedMessage,
  Sender,
  StoreReport,
} from './api-types.ts';
import { base, pathOf } from './description.ts';
import { timeText } from './presentation.ts';
import { linkTo } from './route.ts';
import { isObject, send } from './send.ts';
import { isAdministrator, readable } from './session.ts';
import { errorText } from './webhooks/badges.tsx';

export type Finding = {
  /** `bad`: something is lost or stands still; `warn`: it may still mend itself. */
  readonly tone: 'bad' | 'warn';
  readonly text: string;
  readonly since?: string | undefined;
  /** A sentence from the page that has more of it. */
  readonly detail?: string | undefined;
  readonly link: string;
};

export type Findings = {
  /** Undefined until the first look has ended. */
  readonly items: readonly Finding[] | undefined;
  /** Reads that failed at the last look. */
  readonly failures: number;
};

type Look = {
  /** The list that it reads; undefined: reports for administrators. */
  readonly list: string | undefined;
  readonly read: () => Promise<readonly Finding[]>;
};

const everyMs = 15_000;
/** Rows of one read. */
const rowsMax = 100;
const deliveriesMax = 200;
/** They have their outcomes. */
const operationsMax = 20;
/** Endpoints and jobs that have a line of their own. */
const linesMax = 5;
const dayMs = 86_400_000;
const expirySoonMs = 30 * dayMs;
const freeShareLeast = 0.1;
const freeShareBad = 0.03;

export function useFindings(): Findings {
  const [findings, setFindings] = useState<Findings>({ items: undefined, failures: 0 });
  useEffect(() => {
    let isShown = true;
    let timer = 0;
    const look = async () => {
      if (document.visibilityState === 'visible') {
        const next = await readFindings();
        if (isShown) setFindings(next);
      }
      if (isShown) timer = window.setTimeout(look, everyMs);
    };
    void look();
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, []);
  return findings;
}

function looksOfCaller(): readonly Look[] {
  return looks.filter(({ list }) =>
    list === undefined ? isAdministrator() : readable.value.has(pathOf(list)),
  );
}

/** The caller may read something of the program that could need a person. */
export function hasLooks(): boolean {
  return looksOfCaller().length > 0;
}

async function readFindings(): Promise<Findings> {
  const found = await Promise.all(looksOfCaller().map(({ read }) => read().catch(() => undefined)));
  const items = found.flatMap((each) => each ?? []);
  return {
    items: [...items.filter(({ tone }) => tone === 'bad'), ...items.filter(({ tone }) => tone === 'warn')],
    failures: found.filter((each) => each === undefined).length,
  };
}

/** @throws Error if it cannot be read */
async function read<T>(path: string): Promise<T> {
  const reply = await send('GET', base.value + path);
  if (reply.status !== 200 || !isObject(reply.json)) throw new Error(`${path}: ${reply.status}`);
  return reply.json as T;
}

async function rowsOf<T>(path: string): Promise<{ readonly items: readonly T[]; readonly isAll: boolean }> {
  const { items, nextCursor } = await read<{ items: readonly T[]; nextCursor: string | null }>(path);
  return { items, isAll: nextCursor === null };
}

/** `1 mail was`, `100 or more mails were`. */
function counted(count: number, [one, many]: readonly [string, string], isAll = true): string {
  return `${count.toLocaleString('en')}${isAll ? '' : ' or more'} ${count === 1 && isAll ? one : many}`;
}

const looks: readonly Look[] = [
  { list: undefined, read: findHealth },
  { list: undefined, read: findHold },
  { list: 'deliveries', read: findDeliveries },
  { list: 'endpoints', read: findDisabledEndpoints },
  { list: 'received', read: findMessages },
  { list: 'jobs', read: findJobs },
  { list: 'operations', read: findOperations },
  { list: 'mails', read: findMails },
  { list: 'senders', read: findSecrets },
  { list: 'keys', read: findExpiringKeys },
  { list: undefined, read: findCertificate },
  { list: undefined, read: findDisk },
  { list: undefined, read: findDifferences },
  { list: undefined, read: findErrors },
];

async function findHealth(): Promise<readonly Finding[]> {
  const { status, json } = await send('GET', '/health/ready');
  if (status === 200) return [];
  const why = isObject(json) && typeof json.error === 'string' ? json.error : `status ${status}`;
  return [{ tone: 'bad', text: `The program is not ready: ${why}.`, link: linkTo('system') }];
}

async function findHold(): Promise<readonly Finding[]> {
  const { held, since } = await read<Hold>('/hold');
  if (!held) return [];
  const text = 'Deliveries and mails of this restored copy are held.';
  return [{ tone: 'bad', text, since: since ?? undefined, link: linkTo('system') }];
}

type Sample = Pick<
  Delivery,
  'id' | 'endpointId' | 'status' | 'dueAt' | 'createdAt' | 'lastStatusCode' | 'lastError'
>;

/** No index has the failed deliveries together, so the newest ones are looked at, whatever their state. */
async function findDeliveries(): Promise<readonly Finding[]> {
  const fields = 'id,endpointId,status,dueAt,createdAt,lastStatusCode,lastError';
  const { items } = await rowsOf<Sample>(`/deliveries?sort=-id&limit=${deliveriesMax}&fields=${fields}`);
  const failed = items.filter(({ status }) => status === 'not_delivered');
  const dead = failed.filter(({ dueAt }) => dueAt === null);
  const retried = failed.filter(({ dueAt }) => dueAt !== null);
  const link = linkTo('deliveries', { status: 'not_delivered' });
  const text = (count: number, what: string) =>
    `${counted(count, ['delivery', 'deliveries'])} of the newest ${items.length} ${what}`;
  return [
    ...(dead.length === 0
      ? []
      : [
          {
            ...{ tone: 'bad' as const, since: dead.at(-1)?.createdAt, detail: answerOf(dead[0]), link },
            text: text(dead.length, 'failed, and no attempt follows.'),
          },
        ]),
    ...(retried.length === 0
      ? []
      : [
          {
            ...{
              tone: 'warn' as const,
              since: retried.at(-1)?.createdAt,
              detail: answerOf(retried[0]),
              link,
            },
            text: text(retried.length, 'failed, and will be tried again.'),
          },
        ]),
    ...(await findFailingEndpoints(failed)),
  ];
}

function answerOf(delivery: Sample | undefined): string | undefined {
  const { lastStatusCode = null, lastError = null } = delivery ?? {};
  if (lastStatusCode !== null) return `The last answer was ${lastStatusCode}.`;
  return lastError === null ? undefined : `The last attempt: ${errorText(lastError)}.`;
}

/** Endpoints with failures among the newest deliveries that still fail. */
async function findFailingEndpoints(failed: readonly Sample[]): Promise<readonly Finding[]> {
  const ids = [...new Set(failed.map(({ endpointId }) => endpointId))].slice(0, linesMax);
  const found = await Promise.all(
    ids.map(async (id): Promise<readonly Finding[]> => {
      const [endpoint, health] = await Promise.all([
        read<Endpoint>(`/endpoints/${id}`),
        read<EndpointHealth>(`/endpoints/${id}/health`),
      ]).catch(() => []);
      if (endpoint === undefined || health?.status !== 'failing') return [];
      const text = `The endpoint ${endpoint.url} has failed ${counted(health.failures, ['time', 'times'])} in a row.`;
      return [
        { tone: 'warn', text, since: health.failingSince ?? undefined, link: linkTo('endpoint', { id }) },
      ];
    }),
  );
  return found.flat();
}

const disabledReasons: Readonly<Record<string, string>> = {
  gone: 'It answered 410.',
  failing: 'It failed for too long.',
};

/** Endpoints that Comity has disabled; a person who disabled one knows why. */
async function findDisabledEndpoints(): Promise<readonly Finding[]> {
  const { items } = await rowsOf<Endpoint>(
    '/endpoints?status=disabled&limit=100&fields=id,url,disabledReason,updatedAt',
  );
  return items
    .filter(({ disabledReason }) => disabledReason !== undefined)
    .slice(0, linesMax)
    .map(({ id, url, disabledReason = '', updatedAt }) => ({
      ...{ tone: 'bad', text: `The endpoint ${url} was disabled.`, since: updatedAt },
      ...{ detail: disabledReasons[disabledReason], link: linkTo('endpoint', { id }) },
    }));
}

async function findMessages(): Promise<readonly Finding[]> {
  const fields = 'fields=id,sender,receivedAt,lastError';
  const [dead, pending] = await Promise.all([
    rowsOf<ReceivedMessage>(`/received?status=failed&limit=${rowsMax}&${fields}`),
    rowsOf<ReceivedMessage>(`/received?status=pending&limit=${rowsMax}&${fields}`),
  ]);
  const retried = pending.items.filter(({ lastError }) => lastError !== null && lastError !== 'held-back');
  const [first] = dead.items;
  const [firstRetried] = retried;
  return [
    ...(first === undefined
      ? []
      : [
          {
            ...{ tone: 'bad' as const, since: first.receivedAt, detail: sourcesOf(dead.items) },
            text: `${counted(dead.items.length, ['message is a dead letter', 'messages are dead letters'], dead.isAll)}.`,
            link: linkTo('inbox', { state: 'dead' }),
          },
        ]),
    ...(firstRetried === undefined
      ? []
      : [
          {
            ...{ tone: 'warn' as const, since: firstRetried.receivedAt, detail: sourcesOf(retried) },
            text: `${counted(retried.length, ['message', 'messages'])} failed, and will be tried again.`,
            link: linkTo('inbox', { state: 'pending' }),
          },
        ]),
  ];
}

function sourcesOf(messages: readonly ReceivedMessage[]): string {
  // `job:night` is a job of the application.
  const names = messages.map(({ sender }) => sender.replace(':', ' '));
  return `Of ${[...new Set(names)].join(', ')}.`;
}

type Job = {
  readonly name: string;
  readonly lastRunAt: string | null;
  readonly lastStatus: string | null;
  readonly lastErrorMessage: string | null;
};

async function findJobs(): Promise<readonly Finding[]> {
  const { items } = await rowsOf<Job>('/jobs?limit=100');
  return items
    .filter(({ lastStatus, lastErrorMessage }) => lastStatus === 'failed' || lastErrorMessage !== null)
    .slice(0, linesMax)
    .map(({ name, lastRunAt, lastErrorMessage, lastStatus }) => ({
      tone: lastStatus === 'failed' ? 'bad' : 'warn',
      text: `The last run of the job ${name} failed.`,
      since: lastRunAt ?? undefined,
      detail: lastErrorMessage ?? undefined,
      link: linkTo('member', { path: pathOf('jobs'), id: name }),
    }));
}

type Operation = { readonly id: string; readonly status: string; readonly updatedAt: string };

async function findOperations(): Promise<readonly Finding[]> {
  const { items } = await rowsOf<Operation>(`/operations?sort=-id&limit=${operationsMax}`);
  const failed = items.filter(
    ({ status, updatedAt }) => status === 'failed' && Date.now() - Date.parse(updatedAt) < dayMs,
  );
  if (failed.length === 0) return [];
  const text = `${counted(failed.length, ['operation', 'operations'])} of the newest ${items.length} failed within a day.`;
  const link = linkTo('list', { path: pathOf('operations'), sort: '-id' });
  return [{ tone: 'warn', text, since: failed.at(-1)?.updatedAt, link }];
}

type Mail = {
  readonly id: string;
  readonly status: string;
  readonly attempts: number;
  readonly refused?: readonly string[];
  readonly createdAt: string;
  readonly lastError: string | null;
};

async function findMails(): Promise<readonly Finding[]> {
  const fields = 'fields=id,status,attempts,refused,createdAt,lastError';
  const [failed, newest] = await Promise.all([
    // The queue's index has the mails of one status in this order.
    rowsOf<Mail>(`/mails?status=failed&sort=dueAt&limit=${rowsMax}&${fields}`),
    rowsOf<Mail>(`/mails?sort=-id&limit=${rowsMax}&${fields}`),
  ]);
  const path = pathOf('mails');
  const refused = newest.items.filter((mail) => mail.status !== 'failed' && (mail.refused ?? []).length > 0);
  const retried = newest.items.filter(({ status, attempts }) => status === 'pending' && attempts > 0);
  const finding = (tone: Finding['tone'], text: string, mails: readonly Mail[], status?: string) =>
    mails.length === 0
      ? []
      : [
          {
            ...{ tone, text, since: mails.at(-1)?.createdAt, detail: mails[0]?.lastError ?? undefined },
            link: linkTo('list', { path, status, sort: '-id' }),
          },
        ];
  const given = counted(failed.items.length, ['mail was', 'mails were'], failed.isAll);
  return [
    ...finding('bad', `${given} given up.`, failed.items, 'failed'),
    ...finding(
      'bad',
      `${counted(refused.length, ['mail was', 'mails were'])} refused for a recipient.`,
      refused,
    ),
    ...finding(
      'warn',
      `${counted(retried.length, ['mail', 'mails'])} could not be sent yet, and will be tried again.`,
      retried,
      'pending',
    ),
  ];
}

async function findSecrets(): Promise<readonly Finding[]> {
  const { items } = await rowsOf<Sender>('/senders?limit=100');
  return items.flatMap(({ name, oldSecretsUntil }) => {
    const leftMs = Date.parse(oldSecretsUntil ?? '') - Date.now();
    if (!(leftMs > 0 && leftMs < dayMs)) return [];
    const text = `The earlier secrets of the sender ${name} end within a day.`;
    return [{ tone: 'warn' as const, text, link: linkTo('senders') }];
  });
}

type Expiring = { readonly id: string; readonly name: string; readonly expiresAt: string };

/** Keys that stop working within {@link expirySoonMs}; one that has expired is in the list of keys. */
async function findExpiringKeys(): Promise<readonly Finding[]> {
  const now = Date.now();
  const query = new URLSearchParams({ fields: 'id,name,expiresAt', limit: String(linesMax) });
  query.set('expiresAt[gt]', new Date(now).toISOString());
  query.set('expiresAt[lt]', new Date(now + expirySoonMs).toISOString());
  const { items } = await rowsOf<Expiring>(`/keys?${query}`);
  return items.map(({ id, name, expiresAt }) => ({
    ...{ tone: 'warn', text: `The key ${name} expires ${timeText(expiresAt, true)}.` },
    link: linkTo('member', { path: pathOf('keys'), id }),
  }));
}

async function findCertificate(): Promise<readonly Finding[]> {
  const { tls } = await read<Program>('/meta');
  if (tls === null) return [];
  const leftMs = Date.parse(tls.notAfter) - Date.now();
  if (leftMs >= expirySoonMs) return [];
  const [tone, word] = leftMs < 0 ? (['bad', 'expired'] as const) : (['warn', 'expires'] as const);
  const text = `The TLS certificate ${word} ${timeText(tls.notAfter, true)}.`;
  return [{ tone, text, link: linkTo('system') }];
}

async function findDisk(): Promise<readonly Finding[]> {
  const { disk } = await read<StoreReport>('/meta/store');
  if (disk === null) return [];
  const share = disk.freeBytes / disk.bytes;
  if (share >= freeShareLeast) return [];
  const gibibytes = (disk.freeBytes / 1024 ** 3).toLocaleString('en', { maximumFractionDigits: 1 });
  const percent = share.toLocaleString('en', { style: 'percent', maximumFractionDigits: 1 });
  const text = `The disk of the store is nearly full: ${gibibytes} GiB are free, ${percent}.`;
  return [{ tone: share < freeShareBad ? 'bad' : 'warn', text, link: linkTo('system') }];
}

async function findDifferences(): Promise<readonly Finding[]> {
  const { differences } = await read<Program>('/meta');
  return differences.map(({ what, noticedAt }) => ({
    ...{ tone: 'warn', text: `Another process of this store has ${what}.`, since: noticedAt },
    link: linkTo('system'),
  }));
}

async function findErrors(): Promise<readonly Finding[]> {
  const { hour } = await read<Activity>('/meta/activity');
  const count = hour.serverErrors.reduce((sum, each) => sum + each, 0);
  if (count === 0) return [];
  const first = hour.serverErrors.findIndex((each) => each > 0);
  const since = new Date(Date.parse(hour.from) + first * hour.stepSeconds * 1000).toISOString();
  const text = `${counted(count, ['request', 'requests'])} of the last hour failed with a status of 500 or more.`;
  return [{ tone: 'warn', text, since, link: linkTo('system') }];
}

/**
 * An attacker's list: each route of the program that makes or holds more than its request brings; bounded-routes.ts has the others.
 * growth.test.ts holds both against the routes of the program. Tunnels relay what both sides send, and make nothing.
 */
import { createHmac } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { RequestOptions } from '../../harness/exchange.ts';

export const inboxSecret = 'a secret of the inbox';

export type Ask = (
  method: string,
  path: string,
  options?: RequestOptions,
) => Promise<Record<string, unknown>>;

/** What is stored before. */
export type Known = {
  /** 1,000 documents of `texts` of 5 KB, each with a link. */
  readonly ids: readonly string[];
  /** It has 900 children of 1 KB. */
  readonly parent: string;
  /** What the attack itself prepared. */
  readonly own: readonly string[];
};

export type Attack = {
  readonly name: string;
  readonly atOnce: number;
  /** `METHOD path`, below the base */
  readonly target: (index: number, known: Known) => string;
  /** `METHOD pattern` of the routes it stands for, besides that of its target: they do the same work. */
  readonly standsFor?: readonly string[];
  readonly json?: (known: Known, index: number) => unknown;
  readonly content?: (known: Known, index: number) => Uint8Array;
  readonly headers?:
    | Readonly<Record<string, string>>
    | ((content: Uint8Array, known: Known) => Record<string, string>);
  /** Frames that each WebSocket sends, for clients that open one. */
  readonly frames?: (known: Known) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly prepare?: (ask: Ask, known: Known, receiver: string) => Promise<readonly string[]>;
  /** The clients read nothing. */
  readonly isSlow?: true;
  /** Part of the full tier: it ended the program, or came nearest to it. */
  readonly isWorst?: true;
  /** The program takes contents of a mebibyte as they arrive, from as many clients as it accepts. */
  readonly receives?: true;
};

export const many = <T>(count: number, item: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => item(index));

const bulk = { items: many(1000, () => ({ title: 'b' })) };

/** Another query each time, so that no cache knows its page. */
const unlike = (target: string) => (index: number) =>
  `${target}${target.includes('?') ? '&' : '?'}createdAt[gt]=${1000 + index}-01-01T00:00:00Z`;

const gzip = (value: unknown) => gzipSync(JSON.stringify(value));
const gzipped = { 'Content-Encoding': 'gzip' };
export const ofOwn =
  (method: string, path: string) =>
  (index: number, { own }: Known) =>
    `${method} ${path.replace('{id}', own[index % own.length] ?? '')}`;

/** Documents of `collection`, each with a text of 900 KB. */
const long = (collection: string, count: number) => async (ask: Ask) => {
  const ids: string[] = [];
  while (ids.length < count) {
    const four = many(4, () => ({ json: { text: `${ids.length}`.padEnd(900_000, 'x') } }));
    const made = await Promise.all(four.map((content) => ask('POST', collection, content)));
    ids.push(...made.map(({ id }) => String(id)));
  }
  return ids;
};

/** 100 events of 900 KB, and the id of the first event of all. */
const longEvents = async (ask: Ask) => {
  await long('kept', 100)(ask);
  const { items } = await ask('GET', 'events?limit=1&sort=id');
  return (items as { id: string }[]).map(({ id }) => id);
};

const afterFirst = (_: Uint8Array, { own }: Known) => ({
  Accept: 'text/event-stream',
  'Last-Event-ID': own[0] ?? '',
});

/** Endpoints for all events, each with a path of its own. */
const endpoints = (count: number) => async (ask: Ask, _: Known, receiver: string) => {
  const made = many(count, (index) =>
    ask('POST', 'endpoints', { json: { url: `${receiver}/${index}`, events: ['*'] } }),
  );
  return (await Promise.all(made)).map(({ id }) => String(id));
};

/** An endpoint, 300 deliveries of 100 KB to it, and their ids. */
const deliveries = async (ask: Ask, known: Known, receiver: string) => {
  await endpoints(1)(ask, known, receiver);
  for (let made = 0; made < 300; made += 1)
    await ask('POST', 'events', {
      json: { type: 'desk.told', data: { object: { text: 'x'.repeat(100_000) } } },
    });
  const { items } = await ask('GET', 'deliveries?limit=300');
  return (items as { id: string }[]).map(({ id }) => id);
};

const signedBy = (content: Uint8Array) => ({
  'X-Hub-Signature-256': `sha256=${createHmac('sha256', inboxSecret).update(content).digest('hex')}`,
});

/** Messages of the inbox; the last is first. */
const received = (count: number, octets: number) => async (ask: Ask) => {
  const ids: string[] = [];
  for (let made = 0; made < count; made += 1) {
    const body = JSON.stringify({ number: made, text: 'x'.repeat(octets) });
    const headers = { ...signedBy(Buffer.from(body)), 'Content-Type': 'application/json' };
    await ask('POST', 'webhooks/inbox', { headers, body });
  }
  const { items } = await ask('GET', 'received?limit=100');
  for (const { id } of items as { id: string }[]) ids.push(id);
  return ids;
};

export const boundary = 'growth';
export const part = (name: string, content: string, file = '') =>
  `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${content}\r\n`;
const form = [
  part('file', 'x', '; filename="a"'),
  ...many(200, () => part('texts', 'b')),
  `--${boundary}--\r\n`,
].join('');

const password = 'correct horse battery staple';
const costlyPasswords = { COMITY_PASSWORD_MEMORY_KIBIBYTES: '19456', COMITY_PASSWORD_PASSES: '2' };

export const attacks: readonly Attack[] = [
  { name: 'bulks with words', atOnce: 400, isWorst: true, target: () => 'POST words/bulk', json: () => bulk },
  { name: 'bulks', atOnce: 1000, isWorst: true, target: () => 'POST plain/bulk', json: () => bulk },
  {
    name: 'bulks of single units',
    atOnce: 1000,
    target: () => 'POST plain/bulk',
    json: () => ({ ...bulk, atomic: false }),
  },
  {
    name: 'bulks that are operations',
    atOnce: 1000,
    target: () => 'POST plain/bulk',
    json: () => bulk,
    headers: { Prefer: 'respond-async' },
  },
  {
    name: 'compressed bulks',
    atOnce: 1000,
    target: () => 'POST plain/bulk',
    content: () => gzip(bulk),
    headers: gzipped,
  },
  {
    name: 'imports',
    atOnce: 400,
    target: () => 'POST words/import',
    content: () => Buffer.from(`title\n${'b\n'.repeat(20_000)}`),
    headers: { 'Content-Type': 'text/csv' },
  },
  {
    name: 'imports that are held',
    atOnce: 1000,
    target: () => 'POST words/import?atomic=true',
    content: () => Buffer.from(`title\n${'b\n'.repeat(1000)}`),
    headers: { 'Content-Type': 'text/csv' },
  },
  { name: 'lists', atOnce: 1000, target: unlike('GET texts?limit=1000') },
  { name: 'lists that nobody reads', atOnce: 1000, target: unlike('GET texts?limit=1000'), isSlow: true },
  {
    name: 'compressed lists',
    atOnce: 1000,
    target: unlike('GET texts?limit=1000'),
    headers: { 'Accept-Encoding': 'br' },
  },
  {
    name: 'lists that a function shows',
    atOnce: 1000,
    isWorst: true,
    target: unlike('GET shown?limit=1000'),
    prepare: (ask) => shownTexts(ask),
  },
  { name: 'inclusions', atOnce: 1000, target: unlike('GET links?limit=500&expand=docId') },
  {
    name: 'groups',
    atOnce: 1000,
    target: () => 'QUERY texts',
    json: (_, index) => ({
      ...{ groupBy: ['text'], aggregate: { count: true } },
      filter: { id: { ne: `${index}` } },
    }),
  },
  {
    name: 'queries in SQL',
    atOnce: 1000,
    target: () => 'QUERY texts',
    content: (_, index) => Buffer.from(`SELECT * FROM texts WHERE text LIKE '%${index}%' LIMIT 1000`),
    headers: { 'Content-Type': 'application/sql' },
  },
  {
    name: 'queries by form',
    atOnce: 1000,
    target: () => 'QUERY texts',
    content: (_, index) => Buffer.from(`limit=1000&text[like]=*${index}*`),
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  },
  { name: 'searches', atOnce: 1000, target: unlike('GET words?limit=1000&q=b') },
  {
    name: 'searches by function',
    atOnce: 1000,
    target: () => 'QUERY words',
    json: (_, index) => ({ q: 'b', limit: 1000, filter: { title: { ne: `${index}` } }, sort: ['-rank'] }),
    prepare: async (ask) => {
      await ask('POST', 'words/bulk', { json: bulk });
      return [];
    },
  },
  {
    name: 'deletions of dependants',
    atOnce: 100,
    isWorst: true,
    target: (_, { parent }) => `DELETE parents/${parent}`,
  },
  {
    name: 'bulk deletions',
    atOnce: 100,
    isWorst: true,
    target: () => 'POST texts/bulk-delete',
    json: ({ ids }) => ({ ids }),
  },
  {
    name: 'updates of many',
    atOnce: 100,
    isWorst: true,
    target: () => 'PATCH texts',
    json: (_, index) => ({ filter: {}, patch: { text: `${'b'.repeat(900)}${index}` } }),
  },
  {
    name: 'answers of 8 MB that nobody reads',
    atOnce: 1000,
    isWorst: true,
    target: () => 'POST wide',
    isSlow: true,
  },
  { name: 'actions that wait with a page', atOnce: 1000, target: () => 'POST waits' },
  { name: 'actions that write', atOnce: 1000, target: () => 'POST writes' },
  { name: 'streams of an action', atOnce: 1000, isWorst: true, target: () => 'GET export' },
  {
    name: 'forms of many parts',
    atOnce: 1000,
    target: () => 'POST forms',
    content: () => Buffer.from(form),
    headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
  },
  {
    name: 'writes whose hooks read and write',
    atOnce: 1000,
    isWorst: true,
    target: () => 'POST hooked',
    json: () => ({ title: 'b', makes: 900 }),
  },
  {
    name: 'bulks whose hooks read',
    atOnce: 1000,
    target: () => 'POST hooked/bulk',
    json: () => ({ items: many(100, () => ({ title: 'b', makes: 1 })) }),
  },
  {
    name: 'writes that a subscriber follows',
    atOnce: 1000,
    target: () => 'POST hooked',
    json: () => ({ title: 'b' }),
  },
  {
    name: 'reads of long documents',
    atOnce: 1000,
    target: ofOwn('GET', 'kept/{id}'),
    prepare: long('kept', 100),
  },
  {
    name: 'reads of long documents that nobody reads',
    atOnce: 1000,
    target: ofOwn('GET', 'kept/{id}'),
    prepare: long('kept', 100),
    isSlow: true,
  },
  {
    name: 'changes of long documents',
    atOnce: 1000,
    target: ofOwn('PATCH', 'kept/{id}'),
    json: (_, index) => ({ number: index }),
    headers: { 'Content-Type': 'application/merge-patch+json' },
    prepare: long('kept', 100),
  },
  {
    name: 'deletions of long documents',
    atOnce: 1000,
    target: ofOwn('DELETE', 'kept/{id}'),
    prepare: long('kept', 100),
  },
  {
    name: 'restorations of long documents',
    atOnce: 1000,
    isWorst: true,
    target: ofOwn('POST', 'kept/{id}/restore'),
    async prepare(ask) {
      const ids = await long('kept', 100)(ask);
      for (const id of ids) await ask('DELETE', `kept/${id}`);
      return ids;
    },
  },
  {
    name: 'histories of a long document',
    atOnce: 1000,
    target: (index, { own }) => `GET kept/${own[0]}/history?limit=${(index % 100) + 1}`,
    async prepare(ask) {
      const [id = ''] = await long('kept', 4)(ask);
      for (let number = 0; number < 100; number += 1)
        await ask('PATCH', `kept/${id}`, {
          json: { number },
          headers: { 'Content-Type': 'application/merge-patch+json' },
        });
      return [id];
    },
  },
  {
    name: 'patches that copy',
    atOnce: 1000,
    target: ofOwn('PATCH', 'data/{id}'),
    json: () => many(14, () => ({ op: 'copy', from: '/data', path: '/data/-' })),
    headers: { 'Content-Type': 'application/json-patch+json' },
    async prepare(ask) {
      const made = many(200, () => ask('POST', 'data', { json: { data: ['x'.repeat(100)] } }));
      return (await Promise.all(made)).map(({ id }) => String(id));
    },
  },
  {
    name: 'compressed contents',
    atOnce: 1000,
    target: () => 'POST texts',
    content: () => gzip({ text: 'x'.repeat(1_000_000) }),
    headers: gzipped,
  },
  {
    name: 'lists of long events',
    atOnce: 1000,
    target: (index) => `GET events?limit=${1 + (index % 1000)}`,
    prepare: long('kept', 100),
  },
  {
    name: 'feeds of long events',
    atOnce: 1000,
    target: (index) => `GET events?after=&limit=${1 + (index % 1000)}`,
    prepare: long('kept', 100),
  },
  {
    name: 'streams of long events',
    atOnce: 1000,
    target: () => 'GET events',
    headers: afterFirst,
    prepare: longEvents,
  },
  {
    name: 'streams of long events that nobody reads',
    atOnce: 1000,
    target: () => 'GET events',
    headers: afterFirst,
    prepare: longEvents,
    isSlow: true,
  },
  {
    name: 'WebSockets that subscribe from the start',
    atOnce: 1000,
    target: () => 'GET realtime',
    frames: ({ own }) => many(20, () => JSON.stringify({ subscribe: ['*'], after: own[0] })),
    prepare: longEvents,
  },
  {
    name: 'writes with 250 endpoints',
    atOnce: 1000,
    target: () => 'POST plain',
    json: () => ({ title: 'b' }),
    prepare: endpoints(250),
  },
  {
    name: 'bulks with 250 endpoints',
    atOnce: 100,
    target: () => 'POST plain/bulk',
    json: () => bulk,
    prepare: endpoints(250),
  },
  {
    name: 'events with 250 endpoints',
    atOnce: 1000,
    target: () => 'POST events',
    json: () => ({ type: 'desk.told', data: { object: { text: 'x'.repeat(100_000) } } }),
    prepare: endpoints(250),
  },
  {
    name: 'lists of deliveries',
    atOnce: 1000,
    target: unlike('GET deliveries?limit=1000'),
    prepare: deliveries,
  },
  {
    name: 'requests of deliveries',
    atOnce: 1000,
    target: ofOwn('GET', 'deliveries/{id}/request'),
    prepare: deliveries,
  },
  {
    name: 'resent deliveries',
    atOnce: 1000,
    target: ofOwn('POST', 'deliveries/{id}/resend'),
    prepare: deliveries,
  },
  {
    name: 'recoveries',
    atOnce: 1000,
    target: ofOwn('POST', 'endpoints/{id}/recover'),
    json: () => ({ since: '2020-01-01T00:00:00Z' }),
    async prepare(ask, known, receiver) {
      await long('kept', 40)(ask);
      return endpoints(250)(ask, known, receiver);
    },
  },
  {
    name: 'messages',
    atOnce: 1000,
    target: () => 'POST webhooks/inbox',
    content: (_, index) => Buffer.from(JSON.stringify({ index })),
    headers: signedBy,
  },
  {
    name: 'long messages',
    atOnce: 24,
    isWorst: true,
    target: () => 'POST webhooks/inbox',
    content: (_, index) => Buffer.from(JSON.stringify({ index, text: 'x'.repeat(20_000_000) })),
    headers: signedBy,
  },
  {
    name: 'bodies of messages',
    atOnce: 1000,
    target: ofOwn('GET', 'received/{id}/body'),
    prepare: received(8, 20_000_000),
  },
  {
    name: 'bodies of messages that nobody reads',
    atOnce: 1000,
    isWorst: true,
    target: ofOwn('GET', 'received/{id}/body'),
    prepare: received(8, 20_000_000),
    isSlow: true,
  },
  {
    name: 'replays of one message',
    atOnce: 1000,
    target: ofOwn('POST', 'received/{id}/replay'),
    prepare: received(8, 20_000_000),
  },
  {
    name: 'replays of all messages',
    atOnce: 1000,
    target: () => 'POST received/replay',
    json: () => ({ filter: {} }),
    prepare: received(100, 1_000_000),
  },
  {
    name: 'lists of messages',
    atOnce: 1000,
    target: unlike('GET received?limit=1000'),
    prepare: received(100, 100_000),
  },
  {
    name: 'replays of events',
    atOnce: 1000,
    target: () => 'POST subscribers/reads/replay',
    json: () => ({ since: '2020-01-01T00:00:00Z' }),
    prepare: async (ask) => {
      await ask('POST', 'hooked/bulk', { json: { items: many(200, () => ({ title: 'b' })) } });
      return [];
    },
  },
  { name: 'runs of a job', atOnce: 1000, target: () => 'POST jobs/often/run' },
  {
    name: 'sign-ins',
    atOnce: 1000,
    env: costlyPasswords,
    target: () => 'POST auth/login',
    json: () => ({ email: 'ada@shop.example', password }),
    async prepare(ask) {
      await ask('POST', 'auth/register', { json: { email: 'ada@shop.example', password } });
      return [];
    },
  },
  {
    name: 'registrations',
    atOnce: 1000,
    env: costlyPasswords,
    target: () => 'POST auth/register',
    json: (_, index) => ({ email: `u${index}@shop.example`, password }),
  },
  { name: 'lists of accounts', atOnce: 1000, target: unlike('GET users?limit=1000') },
  { name: 'audits', atOnce: 1000, target: unlike('GET audit?limit=1000') },
  {
    name: 'expunctions',
    atOnce: 1000,
    target: () => 'POST events/expunge',
    json: ({ own }, index) => ({ object: own[index % own.length] }),
    prepare: long('kept', 100),
  },
  {
    name: 'results of operations',
    atOnce: 1000,
    target: ofOwn('GET', 'operations/{id}/result'),
    async prepare(ask) {
      const json = { items: many(1000, () => ({ text: 'x'.repeat(2000) })) };
      const { id } = await ask('POST', 'texts/bulk', { json, headers: { Prefer: 'respond-async' } });
      return [String(id)];
    },
  },
  { name: 'reports of the store', atOnce: 1000, target: () => 'GET meta/store' },
  { name: 'backups', atOnce: 1000, target: () => 'POST meta/backups' },
];

async function shownTexts(ask: Ask): Promise<readonly string[]> {
  for (let made = 0; made < 5; made += 1)
    await ask('POST', 'shown/bulk', {
      json: { items: many(200, (index) => ({ text: `${index}`.padEnd(5000, 'x') })) },
    });
  return [];
}

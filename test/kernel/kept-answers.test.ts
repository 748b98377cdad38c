/** Answers that are given again are those that a walk of the same request would end in, whatever happened in between, on both stores. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type Configuration, resolveConfiguration } from '../../src/config/configuration.ts';
import type { Request, Response } from '../../src/http/message.ts';
import { readRequestFields } from '../../src/http/request-fields.ts';
import { collection, Type } from '../../src/index.ts';
import { createRepeating, KeptAnswers } from '../../src/kernel/handler.ts';
import { Walk } from '../../src/kernel/walk.ts';
import type { WalkContext } from '../../src/kernel/walk-context.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { storeTables } from '../../src/store-tables.ts';
import { databaseWith } from '../harness/postgres-database.ts';
import { openEmbedded } from '../harness/stores.ts';
import { exchange, roomOf, routed, surround } from '../harness/walked-resources.ts';

const schema = Type.Object({ name: Type.String(), secret: Type.Optional(Type.String()) });
const configuration = resolveConfiguration({
  collections: {
    notes: collection({ schema, access: { read: 'public' }, hidden: { secret: 'owner' } }),
    drafts: collection({ schema, access: { read: 'owner' } }),
  },
});

const opens: readonly (readonly [string, (context: TestContext, tables: Tables) => Promise<Store>])[] = [
  ['SQLite', (context, tables) => openEmbedded(context, tables)],
  [
    'PostgreSQL',
    async (context, tables) => {
      const database = await databaseWith(tables);
      const store = await openPostgresStore({ url: database.url, tables });
      context.after(async () => {
        await store.close();
        await database.dispose();
      });
      return store;
    },
  ],
];
type Tables = ReturnType<typeof storeTables>;

type Asked = {
  readonly target: string;
  readonly fields: readonly string[];
  readonly method?: string;
  readonly version?: string;
};

function requestOf({ target, fields, method = 'GET', version = '1.1' }: Asked): Request {
  const rawFields = ['Host', 'shop.example', ...fields];
  return {
    ...{ method, target, version, fields: readRequestFields(rawFields), rawFields },
    readContent: async () => ({ ok: true, bytes: new Uint8Array() }),
    ...{ peer: '192.0.2.1', id: 'test' },
  };
}

/** One room, whose requests are walked or answered again. */
function roomWithAnswers(
  store: Store,
  given: Parameters<typeof surround>[1] = {},
  configured: Configuration = configuration,
) {
  const surroundings = surround(store, given, Date.UTC(2030, 0, 1));
  const answers = new KeptAnswers();
  const resources = routed(surroundings, { collections: configured.collections });
  const plain = roomOf(surroundings, resources);
  const context: WalkContext = { ...plain, answers };
  let repeated = 0;
  const find = (request: Request) => {
    const kept = answers.find(request);
    if (kept !== undefined) repeated += 1;
    return kept;
  };
  const walk = (request: Request, before = {}) => new Walk(context, request, before).run();
  return {
    plain,
    moveClock: surroundings.moveClock,
    walked: (asked: Asked) => new Walk(plain, requestOf(asked)).run(),
    repeating: createRepeating({ find }, { context, store, walk }),
    repeated: () => repeated,
  };
}

/** What goes to the client. */
function sent({ status, fields, content, close }: Response): unknown {
  return [
    status,
    fields,
    typeof content === 'string' ? content : Buffer.from((content ?? '') as Uint8Array),
    close,
  ];
}

let seed = 11;
function random(below: number): number {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((seed / 2 ** 32) * below);
}

function pick<T>(values: readonly T[]): T {
  return values[random(values.length)] as T;
}

for (const [engine, open] of opens) {
  describe(engine, () => {
    test('an answer given again is what a walk of the same request ends in', async (context) => {
      const store = await open(context, storeTables(configuration));
      const room = roomWithAnswers(store);
      const targets: string[] = [];
      for (const [path, who] of [
        ['notes', 'ada'],
        ['notes', 'bob'],
        ['drafts', 'ada'],
      ] as const) {
        const body = JSON.stringify({ name: `of ${who} ${'long '.repeat(300)}`, secret: 'whispered' });
        const fields = ['Authorization', `Bearer ${who}`, 'Content-Type', 'application/json'];
        const made = await exchange(room.plain, { method: 'POST', target: `/api/v1/${path}`, fields, body });
        assert.equal(made.status, 201);
        targets.push(String(made.field('location')));
      }
      const tags = new Set(['"0"', '*', '"broken']);
      const askedBefore: Asked[] = [];
      for (let round = 0; round < 4000; round += 1) {
        if (random(30) === 0) await change(room, pick(targets));
        if (random(40) === 0) room.moveClock(pick([-3600, -1, 1, 7200]));
        const asked =
          random(3) > 0 && askedBefore.length > 0 ? pick(askedBefore.slice(-8)) : newRequest(targets, tags);
        askedBefore.push(asked);
        const again = await room.repeating(requestOf(asked));
        const walked = await room.walked(asked);
        assert.deepEqual(sent(again), sent(walked), JSON.stringify(asked));
        const tag = walked.fields[walked.fields.indexOf('ETag') + 1];
        if (walked.fields.includes('ETag') && tag !== undefined) tags.add(tag);
      }
      assert.ok(room.repeated() > 100, `only ${room.repeated()} were answered again`);
    });

    test('a request that is answered again is counted, and refused like any other', async (context) => {
      const store = await open(context, storeTables(configuration));
      const room = roomWithAnswers(store, { rateLimitReads: 6 });
      const body = JSON.stringify({ name: 'counted' });
      const fields = ['Content-Type', 'application/json', 'Authorization', 'Bearer root'];
      const made = await exchange(room.plain, { method: 'POST', target: '/api/v1/notes', fields, body });
      const asked = { target: String(made.field('location')), fields: [] };
      const statuses: number[] = [];
      for (let count = 0; count < 8; count += 1) {
        const answer = await room.repeating(requestOf(asked));
        statuses.push(answer.status);
        const left = answer.fields[answer.fields.indexOf('X-RateLimit-Remaining') + 1];
        assert.equal(left, String(Math.max(0, 5 - count)));
      }
      assert.deepEqual(statuses, [200, 200, 200, 200, 200, 200, 429, 429]);
      assert.ok(room.repeated() >= 4);
    });
  });
}

function newRequest(targets: readonly string[], tags: ReadonlySet<string>): Asked {
  const maybe = (name: string, values: readonly string[]) => (random(3) === 0 ? [name, pick(values)] : []);
  const known = [...tags].slice(-6);
  return {
    target: `${pick(targets)}${pick(['', '', '', '?fields=name', '?nonsense=1'])}`,
    method: random(12) === 0 ? 'HEAD' : 'GET',
    version: random(9) === 0 ? '2.0' : '1.1',
    fields: [
      ...maybe('Authorization', ['Bearer ada', 'Bearer bob', 'Bearer root', 'Bearer adasHook']),
      ...maybe('If-None-Match', [...known, `${pick(known)}, "1"`]),
      ...maybe('Accept', ['application/json', '*/*', 'text/html', 'application/json;q=0']),
      ...maybe('Accept-Encoding', ['gzip', 'br, gzip;q=0.5', 'identity;q=0']),
      ...(random(6) === 0 ? pick(rareFields) : []),
    ],
  };
}

const rareFields: readonly (readonly string[])[] = [
  ['If-Match', '*'],
  ['If-Modified-Since', 'Tue, 01 Jan 2030 00:00:00 GMT'],
  ['If-Modified-Since', 'Tuesday, 01-Jan-30 00:00:00 GMT'],
  ['If-Unmodified-Since', 'Tue, 01 Jan 2030 00:00:00 GMT'],
  ['Prefer', 'return=minimal'],
  ['Content-Length', '2'],
  ['Expect', 'nothing'],
  ['Origin', 'https://page.example'],
  ['Host', 'other.example'],
];

/** Changes a document, deletes it, or makes it again; refused where it is not the caller's. */
async function change(room: ReturnType<typeof roomWithAnswers>, target: string): Promise<void> {
  const fields = ['Authorization', 'Bearer root', 'Content-Type', 'application/json'];
  if (random(4) === 0) await exchange(room.plain, { method: 'DELETE', target, fields });
  const body = JSON.stringify({
    name: `changed ${random(1000)}`,
    ...(random(2) === 0 ? {} : { secret: 'new' }),
  });
  await exchange(room.plain, { method: 'PUT', target, fields, body });
}

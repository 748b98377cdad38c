/**
 * The shop served to several people: the parts that compose.ts wires, in this process and over real sockets, with a store of its
 * own. `Authorization: Bearer NAME` is the person NAME, who may read and write; `reader` may only read and `root` is an administrator.
 * The clock can be moved forward. No rate limit applies unless limits are given.
 */
import assert from 'node:assert/strict';
import { hash, randomInt } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Configuration } from '../../../src/config/configuration.ts';
import { loadConfiguration } from '../../../src/config/load-configuration.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import type { Request } from '../../../src/http/message.ts';
import { createHttpDateCache } from '../../../src/http/syntax/http-date.ts';
import { createIdSource } from '../../../src/model/id.ts';
import { anonymous, authenticated, operatorId, type Scope } from '../../../src/model/principal.ts';
import { corsPolicy } from '../../../src/resources/answer/cors.ts';
import { decodeContent } from '../../../src/resources/content/decode-content.ts';
import { createIdempotency } from '../../../src/resources/idempotency.ts';
import { createOperations } from '../../../src/resources/operations/operations.ts';
import { principalOf } from '../../../src/resources/operations/stored-request.ts';
import { createRateLimiter, type RateLimitOptions } from '../../../src/resources/rate-limit/rate-limiter.ts';
import type { Identified } from '../../../src/resources/resource.ts';
import type { Room } from '../../../src/resources/room.ts';
import { createRouter } from '../../../src/resources/router.ts';
import { createRoutes } from '../../../src/resources/routes.ts';
import { Walk } from '../../../src/resources/walk.ts';
import { createListener } from '../../../src/server/listener.ts';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';
import type { Store, Table } from '../../../src/store/store.ts';
import { storeTables } from '../../../src/store-tables.ts';
import { type Answer, type RequestOptions, send } from '../../harness/exchange.ts';
import { shopConfig } from '../../harness/running-server.ts';
import { knownAs } from '../../resources/known.ts';

export type Shop = {
  readonly port: number;
  /** As a person, or as nobody. */
  as(name: string | undefined, method: string, path: string, options?: RequestOptions): Promise<Answer>;
  moveClock(seconds: number): void;
  stop(): Promise<void>;
};

const idempotencySeconds = 3600;

export type ShopOptions = {
  readonly limits?: Partial<Pick<RateLimitOptions, 'rateLimitReads' | 'rateLimitWrites' | 'behindProxy'>>;
  /** Where the clock stands still until it is moved; it goes with the real one unless given. */
  readonly clockMs?: number;
  /** Who a credential stands for, where that is what a test is about. */
  readonly identify?: (authorization: string | undefined, store: Store) => Identified;
  /** What is served, where that is not the shop. */
  readonly configuration?: Configuration;
  /** Default: an embedded one. */
  readonly openStore?: (tables: readonly Table[]) => Promise<Store>;
};

export async function openShop({ limits = {}, clockMs, ...options }: ShopOptions = {}): Promise<Shop> {
  const folder = await mkdtemp(join(tmpdir(), 'comity-test-'));
  const configuration = options.configuration ?? (await loadConfiguration(shopConfig)).configuration;
  const tables = storeTables(configuration);
  const store = (await options.openStore?.(tables)) ?? (await openSqliteStore({ folder, tables }));
  let ahead = 0;
  const clock = () => (clockMs ?? Date.now()) + ahead;
  const who = options.identify ?? identify;
  const room = {
    ...roomOf(configuration, store, clock, limits),
    authenticate: ({ fields }: Request) => who(fields.authorization, store),
  };
  const listener = createListener({
    handler: (request) => new Walk(room, request).run(),
    observe: () => undefined,
    apiVersion: '1',
  });
  const { port } = await listener.listen('127.0.0.1', 0);
  return {
    port,
    as: (name, method, path, options = {}) => {
      const credential = name === undefined ? {} : { Authorization: `Bearer ${name}` };
      const headers = { ...credential, ...options.headers };
      return send(port, method, path, { ...options, anonymous: true, headers });
    },
    moveClock: (seconds) => {
      ahead += seconds * 1000;
    },
    async stop() {
      await listener.drain(0);
      await room.operations.idle();
      await store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function roomOf(
  { collections }: Configuration,
  store: Store,
  clock: () => number,
  limits: NonNullable<ShopOptions['limits']>,
): Room {
  const { settings } = loadSettings({}, {}, {});
  const newId = createIdSource(clock, () => randomInt(32));
  const operations = createOperations(
    {
      store,
      path: '/api/v1/operations',
      newId,
      clock,
      random: () => 0,
      observe: ({ kind }) => assert.notEqual(kind, 'operation-failed'),
    },
    async (request, stored, companions) =>
      new Walk(room, request, {
        identify: () => ({ principal: principalOf(stored) }),
        companions,
      }).run(),
  );
  const room: Room = {
    router: createRouter(
      createRoutes({
        ...settings,
        store,
        base: '/api/v1',
        collections,
        newId,
        clock,
        mac: (text) => hash('sha256', text, 'base64url').slice(0, 22),
        addressOf: ({ peer }) => peer,
        queryLimits: {
          ...settings,
          json: { depthMax: settings.jsonDepthMax, keysMax: settings.jsonMembersMax },
        },
        contentLimits: settings,
        streamLimits: { batchBytesMax: 262_144, heartbeatMs: 15_000 },
      }),
    ),
    limits: { ...settings, traceEnabled: false },
    clock,
    authenticate: ({ fields }) => identify(fields.authorization),
    rates: createRateLimiter({
      ...settings,
      rateLimitReads: 0,
      rateLimitWrites: 0,
      ...limits,
      store,
      onFailure: (error) => assert.fail(String(error)),
    }),
    decodeContent: (bytes, codings) => decodeContent(bytes, codings, { bytesMax: settings.decodedBytesMax }),
    lines: store.lines,
    idempotency: createIdempotency({ store, clock, newId, lifetimeSeconds: idempotencySeconds }),
    operations,
    cors: corsPolicy('', 0),
    challengesFor: () => 'Bearer realm="test"',
    development: true,
    formatDate: createHttpDateCache(64),

    loop: { begin: () => 0, end: () => undefined },
  };
  return room;
}

export function identify(authorization: string | undefined): Identified {
  if (authorization === undefined) return { principal: anonymous };
  const id = authorization.slice('Bearer '.length);
  const scopes: readonly Scope[] =
    id === 'root' ? ['read', 'write', 'admin'] : id === 'reader' ? ['read'] : ['read', 'write'];
  return knownAs(authenticated({ id: id === 'root' ? operatorId : id, scopes }));
}

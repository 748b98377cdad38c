/**
 * The shop served to several people: its resources behind the walk over real sockets, with a store of its own. `Authorization: Bearer NAME` is the person NAME, who may read and write; `reader` may only read and `root` is an administrator.
 * The clock can be moved forward. No rate limit applies unless limits are given.
 */
import type { Configuration } from '../../../src/config/configuration.ts';
import { loadConfiguration } from '../../../src/config/load-configuration.ts';
import type { Settings } from '../../../src/config/settings.ts';
import type { RateLimits } from '../../../src/kernel/rate-limit/rate-limiter.ts';
import type { Identified } from '../../../src/kernel/resource.ts';
import { anonymous, authenticated, operatorId, type Scope } from '../../../src/model/principal.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import type { Store, Table } from '../../../src/store/store.ts';
import { storeTables } from '../../../src/store-tables.ts';
import { type Answer, type RequestOptions, send } from '../../harness/exchange.ts';
import { shopConfig } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { roomOf, routed, serve, surround } from '../../harness/walked-resources.ts';
import { knownAs } from '../../resources/known.ts';

export type Shop = {
  readonly port: number;
  /** As a person, or as nobody. */
  as(name: string | undefined, method: string, path: string, options?: RequestOptions): Promise<Answer>;
  moveClock(seconds: number): void;
  stop(): Promise<void>;
};

export type ShopOptions = {
  readonly limits?: Partial<Pick<RateLimits, 'rateLimitReads' | 'rateLimitWrites' | 'behindProxy'>>;
  readonly settings?: Partial<Settings>;
  /** Where the clock stands still until it is moved; it goes with the real one unless given. */
  readonly clockMs?: number;
  /** Who a credential stands for, where that is what a test is about. */
  readonly identify?: (authorization: string | undefined, store: Store) => Identified;
  /** What is served, where that is not the shop. */
  readonly configuration?: Configuration;
  /** Default: an embedded one. */
  readonly openStore?: (tables: readonly Table[]) => Promise<Store>;
};

export async function openShop({
  limits = {},
  settings = {},
  clockMs,
  ...options
}: ShopOptions = {}): Promise<Shop> {
  const folder = temporaryFolder();
  const configuration = options.configuration ?? (await loadConfiguration(shopConfig)).configuration;
  const tables = storeTables(configuration);
  const store = (await options.openStore?.(tables)) ?? (await openSqliteStore({ folder, tables }));
  const surroundings = surround(store, { ...limits, ...settings, idempotencySeconds: 3600 }, clockMs);
  const who = options.identify ?? identify;
  const room = roomOf(surroundings, routed(surroundings, { collections: configuration.collections }), {
    authenticate: ({ fields }) => who(fields.authorization, store),
    development: true,
  });
  const { port, stop } = await serve(room);
  return {
    port,
    as: (name, method, path, options = {}) => {
      const credential = name === undefined ? {} : { Authorization: `Bearer ${name}` };
      const headers = { ...credential, ...options.headers };
      return send(port, method, path, { ...options, anonymous: true, headers });
    },
    moveClock: surroundings.moveClock,
    async stop() {
      await stop();
      await room.operations.idle();
      await store.close();
    },
  };
}

export function identify(authorization: string | undefined): Identified {
  if (authorization === undefined) return { principal: anonymous };
  const id = authorization.slice('Bearer '.length);
  const scopes: readonly Scope[] =
    id === 'root' ? ['read', 'write', 'admin'] : id === 'reader' ? ['read'] : ['read', 'write'];
  return knownAs(authenticated({ id: id === 'root' ? operatorId : id, scopes }));
}

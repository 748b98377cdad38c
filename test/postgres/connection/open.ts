/** A connection whose coming and going can be awaited, and short ways to write calls. */
import { EventEmitter, once } from 'node:events';
import { addressOf } from '../../../src/store/postgres/connection/address.ts';
import type {
  Call,
  Connection,
  ConnectionOptions,
} from '../../../src/store/postgres/connection/connection.ts';
import { createConnection } from '../../../src/store/postgres/connection/connection.ts';
import type { Ending } from '../../harness/listening.ts';

export type Open = {
  readonly connection: Connection;
  /** Resolves once so many sessions have been made, and so many lost. */
  readonly made: (sessions: number) => Promise<void>;
  readonly lost: (sessions: number) => Promise<void>;
};

export function open(context: Ending, url: string, options: Partial<ConnectionOptions> = {}): Open {
  const changes = new EventEmitter();
  let made = 0;
  let lost = 0;
  const connection = createConnection({
    address: addressOf(url),
    name: 'comity test',
    connectTimeoutMs: 10_000,
    timeoutMs: 10_000,
    onConnected() {
      made += 1;
      changes.emit('change');
    },
    onLost() {
      lost += 1;
      changes.emit('change');
    },
    ...options,
  });
  context.after(() => connection.close());
  return {
    connection,
    made: async (sessions) => {
      while (made < sessions) await once(changes, 'change');
    },
    lost: async (sessions) => {
      while (lost < sessions) await once(changes, 'change');
    },
  };
}

export function sql(text: string, ...values: Call['values']): Call {
  return { sql: text, values };
}

/** Sent without being prepared. */
export function plain(text: string): Call {
  return { sql: text, values: [], prepared: false };
}

/** Resolves once the session of this process number sleeps in a statement: what other sessions do can only be looked at. */
export async function untilAsleep(observer: Connection, pid: number): Promise<void> {
  const look = sql("SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $1::int", pid);
  for (;;) {
    const [reply] = await observer.send([look]);
    if (reply?.rows[0]?.[0] === true) return;
  }
}

export async function pidOf(connection: Connection): Promise<number> {
  const [reply] = await connection.send([sql('SELECT pg_backend_pid()')]);
  return Number(reply?.rows[0]?.[0]);
}

/**
 * One PostgreSQL for all test files of a run, started when the first of them asks. `scripts/test.ts` offers it on a
 * port that the environment names; postgres-database.ts asks there. A test file run by itself asks in vain and has its own.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { type Keeper, spawnKeeper } from './keeper-process.ts';

/** Names the port in the environment of the test files. */
const portVariable = 'COMITY_TEST_POSTGRES_PORT';

/** Without fsync: what these tests judge is not power loss, and each of the many commits would wait for the disk. */
export const quickSettings: Readonly<Record<string, string>> = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: '200',
  max_wal_senders: '0',
  wal_level: 'minimal',
};

export type OfferedServer = {
  /** Stops the server when one was started. */
  close(): Promise<void>;
};

/** Sets the environment of the processes started from here on. */
export async function offerServer(): Promise<OfferedServer> {
  let keeper: Keeper | undefined;
  let url: Promise<string> | undefined;
  const server = createServer((socket) => {
    keeper ??= spawnKeeper(quickSettings);
    url ??= keeper.start();
    socket.on('error', () => undefined);
    url.then(
      (value) => socket.end(value),
      (error: unknown) => socket.end(`failed: ${error instanceof Error ? error.message : String(error)}`),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  const address = server.address();
  if (address !== null && typeof address === 'object') process.env[portVariable] = String(address.port);
  return {
    async close() {
      server.close();
      await keeper?.dispose();
    },
  };
}

/** The URL of the run's server; undefined when no run offers one. */
export async function askForServer(): Promise<string | undefined> {
  const port = process.env[portVariable];
  if (port === undefined) return undefined;
  const answer = await text(connect(Number(port), '127.0.0.1'));
  if (!answer.startsWith('postgres://')) throw new Error(`The run's PostgreSQL ${answer}`);
  return answer;
}

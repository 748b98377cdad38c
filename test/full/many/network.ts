/**
 * The network between the processes and their database, which can lose what the database answers and then every connection.
 * It looks into nothing that passes, so that a load is slowed as little as can be.
 */
import { connect, createServer } from 'node:net';
import { listen } from '../../harness/listening.ts';

export type Network = {
  /** The same database, over this network. */
  readonly url: string;
  /** Loses what the database says from now on, and `ms` later cuts every connection: what was asked may have been done. */
  cut(ms: number): Promise<void>;
  close(): Promise<void>;
};

export async function networkBefore(databaseUrl: string): Promise<Network> {
  const target = new URL(databaseUrl);
  let losing = false;
  const listener = createServer({ noDelay: true }, (client) => {
    const server = connect({ host: target.hostname, port: Number(target.port || 5432), noDelay: true });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => one.destroy());
      one.on('close', () => other.destroy());
    }
    client.pipe(server);
    server.on('data', (bytes: Buffer) => {
      if (!losing) client.write(bytes);
    });
  });
  const { port, sockets, close } = await listen(listener);
  const url = new URL(target);
  url.host = `127.0.0.1:${port}`;
  return {
    url: url.href,
    async cut(ms) {
      losing = true;
      await new Promise((resolve) => setTimeout(resolve, ms));
      for (const client of sockets) client.destroy();
      losing = false;
    },
    close,
  };
}

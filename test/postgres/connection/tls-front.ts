/**
 * A server that speaks TLS in front of one that does not, as one in the middle would: it answers the client's question for TLS, or
 * refuses it, and passes what is inside on.
 */
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { TLSSocket } from 'node:tls';
import { listen } from '../../harness/listening.ts';

/** The file of the CA that signed the certificate, which is for `localhost` alone. */
export const caFile = `${import.meta.dirname}/tls/ca.pem`;

const cert = readFileSync(`${import.meta.dirname}/tls/server.pem`);
const key = readFileSync(`${import.meta.dirname}/tls/server-key.pem`);
const sslRequestBytes = 8;

export type TlsFront = {
  /** The same database, through the front, with no word about TLS. `host` is a name or an address of the loopback. */
  url(host: string, parameters?: string): string;
  /** Connections over which TLS was agreed. */
  readonly encrypted: number;
  close(): Promise<void>;
};

export async function tlsFront(target: string): Promise<TlsFront> {
  let encrypted = 0;
  const listener = createServer((client) => {
    const { hostname, port } = new URL(target);
    const server = connect(Number(port || '5432'), hostname);
    server.on('error', () => server.destroy());
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
    client.once('readable', () => {
      client.read(sslRequestBytes);
      client.write('S');
      const inner = new TLSSocket(client, { isServer: true, cert, key });
      inner.on('error', () => client.destroy());
      inner.on('secure', () => {
        encrypted += 1;
      });
      inner.pipe(server).pipe(inner);
    });
  });
  const { port, close } = await listen(listener, undefined, '::');
  return {
    url(host, parameters = '') {
      const url = new URL(target);
      url.host = `${host}:${port}`;
      return `${url.href}${parameters}`;
    },
    get encrypted() {
      return encrypted;
    },
    close,
  };
}

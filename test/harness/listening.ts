/** A server that a test makes itself (node:http, node:https, node:tls, node:net), on a free port of this machine until the test ends. */
import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';

/** What tells of the end of a test, or of all tests of a file. */
export type Ending = { readonly after: (dispose: () => unknown) => unknown };

export type Listening = {
  readonly port: number;
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** Connections now. */
  readonly sockets: ReadonlySet<Socket>;
  /** Cuts every connection and listens no more; may be called again. */
  close(): Promise<void>;
};

/**
 * Peers that break off are no failure of the test.
 * @param context with whose end the server closes; without it the caller closes
 */
export async function listen(server: Server, context?: Ending, host = '127.0.0.1'): Promise<Listening> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
  });
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  server.listen(0, host);
  await once(server, 'listening');
  context?.after(close);
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://${host}:${port}`, sockets, close };
}

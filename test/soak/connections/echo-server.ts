/** Where the tunnels of the soak lead to: sends back what comes, ends when the other side has ended, and counts what is open. */
import { createServer } from 'node:net';
import { listen } from '../../harness/listening.ts';

export type EchoServer = {
  readonly port: number;
  /** Connections now. */
  count(): number;
  close(): Promise<void>;
};

export async function startEcho(): Promise<EchoServer> {
  const server = createServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket));
  const { port, sockets, close } = await listen(server);
  return { port, count: () => sockets.size, close };
}

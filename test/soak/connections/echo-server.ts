/** Where the tunnels of the soak lead to: sends back what comes, ends when the other side has ended, and counts what is open. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

export type EchoServer = {
  readonly port: number;
  /** Connections now. */
  count(): number;
  close(): Promise<void>;
};

export function startEcho(): Promise<EchoServer> {
  const open = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => open.delete(socket));
    socket.pipe(socket);
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve({
        port: (server.address() as AddressInfo).port,
        count: () => open.size,
        close: () =>
          new Promise((closed) => {
            for (const socket of open) socket.destroy();
            server.close(() => closed());
          }),
      });
    });
  });
}

/** Where the receiver listens, and who is connected to it. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export function listening(
  server: Server,
  { host = '127.0.0.1', port = 0 }: { readonly host?: string; readonly port?: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}

export function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

/** @returns what resolves when nobody is connected any more */
export function watchConnections(server: Server): () => Promise<void> {
  const waiting = new Set<() => void>();
  let connections = 0;
  server.on('connection', (socket) => {
    connections += 1;
    socket.once('close', () => {
      connections -= 1;
      if (connections > 0) return;
      for (const go of waiting) go();
      waiting.clear();
    });
  });
  return () => new Promise((resolve) => void (connections === 0 ? resolve() : waiting.add(resolve)));
}

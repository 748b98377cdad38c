/** Listens on a free loopback port and prints the line by which `bench/run.ts` learns the address. */
import type { AddressInfo, Server } from 'node:net';

export function announce(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`floor listening on http://127.0.0.1:${port}\n`);
  });
}

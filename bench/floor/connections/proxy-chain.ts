/**
 * The package `proxy-chain` as a peer, without credentials.
 *
 * Usage: node bench/floor/connections/proxy-chain.ts
 */
import { Server } from 'proxy-chain';

const server = new Server({ port: 0, host: '127.0.0.1', verbose: false });
// A tunnel that its client cuts is told as a failure.
server.on('requestFailed', () => undefined);
await server.listen();
process.stdout.write(`floor listening on http://127.0.0.1:${server.port}\n`);

/**
 * Floor of the fan-out: `ws` over `node:http`, which sends one text of so many octets to every client for each POST, after it has
 * answered that. Nothing is stored.
 *
 * Usage: node bench/floor/connections/broadcast.ts TEXT-BYTES
 */
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';
import { announce } from '../announce.ts';

const text = Buffer.from('{"event":'.padEnd(Number(process.argv[2] ?? 500) - 1, '0').concat('}'));
const subscribed = '{"subscribed":["*"]}';

const server = createServer((request, response) => {
  request.resume().once('end', () => {
    response.writeHead(201, ['Content-Length', '0']).end();
    for (const client of sockets.clients) client.send(text, { binary: false });
  });
});
const sockets = new WebSocketServer({ server, perMessageDeflate: false, clientTracking: true });
sockets.on('connection', (socket) => {
  socket.on('message', () => socket.send(subscribed));
  socket.on('error', () => undefined);
});
announce(server);

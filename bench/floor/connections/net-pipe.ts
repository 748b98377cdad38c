/**
 * Floor of tunnels: `node:http` for the CONNECT, `node:net` for the rest, joined by `pipe`. It asks for no credential and judges nothing.
 *
 * Usage: node bench/floor/connections/net-pipe.ts
 */
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { announce } from '../announce.ts';

const server = createServer();
server.on('connect', (request, socket, head) => {
  const [host = '', port] = (request.url ?? '').split(':');
  const destination = connect(Number(port), host, () => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    if (head.length > 0) destination.write(head);
    socket.pipe(destination);
    destination.pipe(socket);
  });
  destination.setNoDelay(true);
  socket.on('error', () => destination.destroy());
  destination.on('error', () => socket.destroy());
});
announce(server);

/**
 * A port of the listener. The loop accepts one connection each turn from each socket that listens: behind 1,000 that come at once, a client
 * waits for as many turns, whatever each does beside. So a port is several sockets where the system spreads connections over them
 * (SO_REUSEPORT): the same 1,000 are accepted in some 130 turns.
 */
import { createServer, type Server, type ServerOpts, type Socket } from 'node:net';
import { platform } from 'node:process';
import { ignoreError, onArrival, ownEmitter } from '../../observe/own-emitter.ts';
import type { Context } from '../context.ts';

const socketsPerPort = platform === 'linux' ? 8 : 1;
const keepAliveProbeMs = 60_000;

/** Half-open: a client still gets its responses after its FIN, and a tunnel continues in the other direction. */
const socketOptions: ServerOpts = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: keepAliveProbeMs,
};

/**
 * Connections in the system's accept queue, within net.core.somaxconn. With node's 511, a burst made clients wait a
 * second for the next SYN.
 */
const waitingConnectionsMax = 4_096;

/** Takes a connection that was admitted. */
export type Take = (socket: Socket) => void;

type Place = { readonly host: string; readonly port: number };

export type OpenPort = Place & {
  /** The sockets that listen, for the drain to close. */
  readonly sockets: readonly Server[];
};

/** `port`: 0 picks a free one. `isShared`: other threads listen at it, too. */
export type PortPlace = Place & { readonly isShared: boolean };

/** Rejects with node's error (`EADDRINUSE`, `EACCES`), and then nothing is open. */
export async function openPort(context: Context, take: Take, at: PortPlace): Promise<OpenPort> {
  const { isShared } = at;
  let place: Place = socketsPerPort === 1 || isShared ? at : await freePlace(at);
  const sockets: Server[] = [];
  try {
    while (sockets.length < socketsPerPort) {
      const socket = createSocket(context, take);
      place = await listen(socket, place, isShared || socketsPerPort > 1);
      sockets.push(socket);
    }
  } catch (error) {
    for (const socket of sockets) socket.close();
    throw error;
  }
  return { host: place.host, port: place.port, sockets };
}

/** A port with SO_REUSEPORT opens although another program has it open in the same way, and without it only if none has. */
async function freePlace(at: Place): Promise<Place> {
  const alone = ownEmitter(createServer(), ignoreError);
  onArrival(alone, 'connection', ignoreError, (socket: Socket) => socket.destroy());
  const place = await listen(alone, at, false);
  await closeSocket(alone);
  return place;
}

export function closeSocket(socket: Server): Promise<void> {
  return new Promise((resolve) => socket.close(() => resolve()));
}

/** A failed accept (the system is out of memory or descriptors) is logged, and the port continues; `listen` reports a port that cannot be opened. */
function createSocket(context: Context, take: Take): Server {
  const listening = ownEmitter(createServer(socketOptions), (error) => {
    if (listening.listening) context.observe({ kind: 'accept-failed', why: error.message });
  });
  onArrival(listening, 'connection', ignoreError, (socket: Socket) => {
    context.turns.connectionCame();
    if (context.connections.admit(socket)) take(socket);
    else {
      context.observe({ kind: 'connection-refused', peer: socket.remoteAddress ?? '' });
      socket.destroy();
    }
  });
  return listening;
}

async function listen(socket: Server, { host, port }: Place, reusePort: boolean): Promise<Place> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once('error', reject);
  socket.listen({ host, port, reusePort, backlog: waitingConnectionsMax }, resolve);
  await promise;
  socket.off('error', reject);
  const address = socket.address();
  if (address === null || typeof address === 'string') throw new Error('the port has no address');
  return { host: address.address, port: address.port };
}

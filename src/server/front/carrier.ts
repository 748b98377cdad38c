/**
 * The TCP socket under a connection: itself in cleartext, the one that carries it over TLS. A reset (RST) can be sent on that one alone;
 * node:net refuses to on a TLSSocket.
 */
import type { Socket } from 'node:net';

const carrierKey = Symbol('carrier');
type CarriedSocket = Socket & { [carrierKey]?: Socket };

export function carry(socket: Socket, carrier: Socket): void {
  (socket as CarriedSocket)[carrierKey] = carrier;
}

/** Ends it so that the client sees that something broke. */
export function resetConnection(socket: Socket): void {
  const carrier = (socket as CarriedSocket)[carrierKey] ?? socket;
  if (!carrier.destroyed) carrier.resetAndDestroy();
  if (carrier !== socket) socket.destroy();
}

/** The servers that a front hands connections to. They never listen themselves; a `connection` event is how they get a socket. */
import type { Socket } from 'node:net';

export type ConnectionTaker = { emit(event: 'connection', socket: Socket): boolean };

export type Protocols = { readonly http1: ConnectionTaker; readonly http2: ConnectionTaker };

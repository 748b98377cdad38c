/**
 * The cleartext port (§4.13): HTTP/1.1, and HTTP/2 by prior knowledge, whose connection preface no HTTP/1.1 request
 * begins with (RFC 9113 §3.3, §3.4). `P` and `PR` also begin POST and PROPFIND, so the third octet decides; the chosen
 * server judges the rest.
 */
import type { Server, Socket } from 'node:net';
import type { Context } from '../context.ts';
import { lookAtFirstOctets, openFront, type Protocols } from './first-octets.ts';

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const octetsThatDecide = 3;

export function createCleartextFront(context: Context, protocols: Protocols): Server {
  const { limits } = context;
  const look = {
    judge: protocolOf,
    otherwise: 'http1',
    timeoutMs: Math.min(limits.h2cTimeoutMs, limits.headersTimeoutMs),
    pass: (socket: Socket, kind: 'http1' | 'http2', octets: Buffer) => {
      if (kind === 'http1') {
        protocols.http1.emit('connection', socket);
        // It listens for data by now, so it gets these octets within this call.
        socket.unshift(octets);
        return;
      }
      // A session reads what its socket holds in its first turn.
      socket.pause();
      socket.unshift(octets);
      protocols.http2.emit('connection', socket);
    },
  } as const;
  return openFront(context, (socket) => lookAtFirstOctets(socket, look));
}

/** Undefined: the octets begin the preface and other methods too. */
export function protocolOf(octets: Uint8Array): 'http1' | 'http2' | undefined {
  const length = Math.min(octets.length, preface.length);
  for (let index = 0; index < length; index += 1) {
    if (octets[index] !== preface[index]) return 'http1';
  }
  return length < octetsThatDecide ? undefined : 'http2';
}

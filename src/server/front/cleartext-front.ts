/**
 * The cleartext port (§4.13): HTTP/1.1, and HTTP/2 by prior knowledge, whose connection preface no HTTP/1.1 request
 * begins with (RFC 9113 §3.3, §3.4). `P` and `PR` also begin POST and PROPFIND, so the third octet decides; the chosen
 * server judges the rest.
 */
import type { Socket } from 'node:net';
import type { Context } from '../context.ts';
import { lookAtFirstOctets, type Protocols } from './first-octets.ts';
import type { Take } from './port.ts';

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const octetsThatDecide = 3;

export function createCleartextFront(context: Context, protocols: Protocols): Take {
  const { limits } = context;
  const look = {
    judge: protocolOf,
    isProbe: (octets: Buffer) => context.probes.has(targetOf(octets)),
    otherwise: 'http1',
    timeoutMs: Math.min(limits.h2cTimeoutMs, limits.headersTimeoutMs),
    pass: (socket: Socket, kind: 'http1' | 'http2') => {
      protocols[kind].emit('connection', socket);
      // A session of HTTP/2 reads what its socket holds by itself.
      if (kind === 'http1') socket.resume();
    },
  } as const;
  return (socket) => lookAtFirstOctets(context, socket, look);
}

const space = 0x20;

/** The target of a request line; empty if it has not arrived completely. */
function targetOf(octets: Buffer): string {
  const start = octets.indexOf(space) + 1;
  return octets.toString('latin1', start, Math.max(start, octets.indexOf(space, start)));
}

/** Undefined: the octets begin the preface and other methods too. */
export function protocolOf(octets: Uint8Array): 'http1' | 'http2' | undefined {
  const length = Math.min(octets.length, preface.length);
  for (let index = 0; index < length; index += 1) {
    if (octets[index] !== preface[index]) return 'http1';
  }
  return length < octetsThatDecide ? undefined : 'http2';
}

/**
 * The port over TLS 1.2 and 1.3 (§4.13): ALPN chooses between HTTP/2 and HTTP/1.1 (RFC 7301); a client that does not speak
 * ALPN gets HTTP/1.1. `Upgrade: h2c` means nothing here (RFC 9113 §3.3).
 *
 * The first octet of a connection is looked at before TLS has it: where it begins a request in cleartext, the answer is a
 * 400 in cleartext that says what this port speaks. Whatever else goes wrong before the handshake is done ends the
 * connection with the alert that OpenSSL chose.
 */
import type { Server, Socket } from 'node:net';
import { createServer as createTls, type TLSSocket, type Server as TlsServer } from 'node:tls';
import { ignoreError, onArrival, ownEmitter } from '../../observe/own-emitter.ts';
import { connectionOf } from '../connection.ts';
import type { Context } from '../context.ts';
import { rawAnswer } from '../raw-answer.ts';
import { openFront } from './admit-socket.ts';
import { carry } from './carrier.ts';
import type { Certificate, CertificatePair } from './certificate.ts';
import { lookAtFirstOctets } from './first-octets.ts';
import type { Protocols } from './protocols.ts';

/** `tlsAlpn` of the settings: what is offered, best first. */
export type AlpnOffer = 'h2,http/1.1' | 'http/1.1';

export type TlsOptions = { readonly certificate: Certificate; readonly alpn: AlpnOffer };

type FirstOctet = 'handshake' | 'request' | 'other';

/** ContentType handshake (RFC 8446 §5.1). */
const handshakeOctet = 0x16;
const minVersion = 'TLSv1.2';

export function createTlsFront(context: Context, protocols: Protocols, options: TlsOptions): Server {
  const { limits } = context;
  const carriers: Carriers = new Map();
  const tls = createTlsServer(context, carriers, protocols, options);
  const look = {
    judge: (octets: Uint8Array) => judgeFirstOctet(octets[0] ?? 0),
    otherwise: 'other',
    timeoutMs: limits.headersTimeoutMs,
    pass: (socket: Socket, kind: FirstOctet, octets: Buffer) => {
      if (kind === 'request') refuseCleartext(context, socket);
      else if (kind === 'other') socket.destroy();
      else {
        const name = peerName(socket);
        carriers.set(name, socket);
        socket.once('close', () => carriers.delete(name));
        // What a socket holds is read by the TLSSocket that is made for it.
        socket.pause();
        socket.unshift(octets);
        tls.emit('connection', socket);
      }
    },
  } as const;
  return openFront(context, (socket) => lookAtFirstOctets<FirstOctet>(socket, look));
}

/** Sockets under TLS that did not finish their handshake yet, by peer: node:tls does not tell which of them it speaks of. */
type Carriers = Map<string, Socket>;

function createTlsServer(
  context: Context,
  carriers: Carriers,
  { http1, http2 }: Protocols,
  { certificate, alpn }: TlsOptions,
): TlsServer {
  const tls = ownEmitter(
    createTls({
      ...certificate.pair(),
      minVersion,
      ALPNProtocols: alpn.split(','),
      handshakeTimeout: context.limits.headersTimeoutMs,
    }),
    ignoreError,
  );
  certificate.onChange((pair: CertificatePair) => tls.setSecureContext({ ...pair, minVersion }));
  onArrival(tls, 'secureConnection', ignoreError, (socket: TLSSocket) => {
    const carrier = carriers.get(peerName(socket));
    if (carrier !== undefined) {
      carriers.delete(peerName(socket));
      carry(socket, carrier);
      // From here on the connection is known by the socket that HTTP is spoken on.
      context.connections.replace(carrier, socket);
    }
    (socket.alpnProtocol === 'h2' ? http2 : http1).emit('connection', socket);
  });
  tls.on('tlsClientError', (_error, socket) => {
    context.observe({
      kind: 'client-error',
      code: 'tls_failed',
      status: 0,
      peer: socket.remoteAddress ?? '',
    });
    socket.destroy();
  });
  return tls;
}

/** Unique among the connections of a port. */
function peerName(socket: Socket): string {
  return `${socket.remoteAddress ?? ''} ${socket.remotePort ?? 0}`;
}

function judgeFirstOctet(octet: number): FirstOctet {
  if (octet === handshakeOctet) return 'handshake';
  const isLetter = (octet >= 0x41 && octet <= 0x5a) || (octet >= 0x61 && octet <= 0x7a);
  return isLetter ? 'request' : 'other';
}

function refuseCleartext(context: Context, socket: Socket): void {
  const message = 'this port speaks TLS: use https';
  const { status, text, code } = rawAnswer(context, { code: 'message_invalid', message });
  context.observe({ kind: 'client-error', code, status, peer: connectionOf(socket, context.monotonic).peer });
  socket.end(text);
  // What still comes is dropped, so that the kernel does not answer it with a reset that destroys the answer.
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), context.limits.unreadContentTimeoutMs).unref();
  socket.once('close', () => clearTimeout(timer));
}

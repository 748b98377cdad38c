/**
 * The port over TLS 1.2 and 1.3 (§4.13): ALPN chooses between HTTP/2 and HTTP/1.1 (RFC 7301); a client without ALPN
 * gets HTTP/1.1. `Upgrade: h2c` is ignored here (RFC 9113 §3.3).
 *
 * If the first octet of a connection begins a cleartext request, the response is a cleartext 400 that names the
 * protocol of the port. Any other failure before the end of the handshake ends the connection with OpenSSL's alert.
 */
import type { Socket } from 'node:net';
import { createServer as createTls, type TLSSocket, type Server as TlsServer } from 'node:tls';
import { ignoreError, onArrival, ownEmitter } from '../../observe/own-emitter.ts';
import { connectionOf } from '../connection.ts';
import type { Context } from '../context.ts';
import { rawAnswer } from '../problem-answer.ts';
import { closeInStages } from '../unread-content.ts';
import type { Certificate, CertificatePair } from './certificate.ts';
import { lookAtFirstOctets, type Protocols } from './first-octets.ts';
import type { Take } from './port.ts';

/** `tlsAlpn` of the settings: offered protocols, best first. */
export type AlpnOffer = 'h2,http/1.1' | 'http/1.1';

export type TlsOptions = { readonly certificate: Certificate; readonly alpn: AlpnOffer };

type FirstOctet = 'handshake' | 'request' | 'other';

/** ContentType handshake (RFC 8446 §5.1). */
const handshakeOctet = 0x16;
const minVersion = 'TLSv1.2';

export function createTlsFront(context: Context, protocols: Protocols, options: TlsOptions): Take {
  const { limits } = context;
  const carriers: Carriers = new Map();
  const tls = createTlsServer(context, carriers, protocols, options);
  const look = {
    judge: (octets: Uint8Array) => judgeFirstOctet(octets[0] ?? 0),
    otherwise: 'other',
    timeoutMs: limits.headersTimeoutMs,
    pass: (socket: Socket, kind: FirstOctet) => {
      if (kind === 'request') refuseCleartext(context, socket);
      else if (kind === 'other') socket.destroy();
      else {
        const name = peerName(socket);
        carriers.set(name, socket);
        socket.once('close', () => carriers.delete(name));
        // The TLSSocket reads what the socket holds.
        tls.emit('connection', socket);
      }
    },
  } as const;
  return (socket) => lookAtFirstOctets<FirstOctet>(context, socket, look);
}

/** Sockets before the end of their TLS handshake, by peer: node:tls does not say which of them an error concerns. */
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
      recordCarrier(socket, carrier);
      // From here on, the connection is identified by the socket of HTTP.
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

function peerName(socket: Socket): string {
  return `${socket.remoteAddress ?? ''} ${socket.remotePort ?? 0}`;
}

function judgeFirstOctet(octet: number): FirstOctet {
  if (octet === handshakeOctet) return 'handshake';
  const isLetter = (octet >= 0x41 && octet <= 0x5a) || (octet >= 0x61 && octet <= 0x7a);
  return isLetter ? 'request' : 'other';
}

function refuseCleartext(context: Context, socket: Socket): void {
  const message = 'this port requires TLS: use https';
  const { status, text, code } = rawAnswer(context, { code: 'message_invalid', message });
  context.observe({ kind: 'client-error', code, status, peer: connectionOf(socket, context.monotonic).peer });
  socket.write(text);
  closeInStages(context, socket);
}

const carrierKey = Symbol('carrier');
type CarriedSocket = Socket & { [carrierKey]?: Socket };

/** Records the TCP socket under a TLS connection: only it can send a RST, which node:net refuses on a TLSSocket. */
function recordCarrier(socket: Socket, carrier: Socket): void {
  (socket as CarriedSocket)[carrierKey] = carrier;
}

/** Resets the connection, so that the client sees a failure. */
export function resetConnection(socket: Socket): void {
  const carrier = (socket as CarriedSocket)[carrierKey] ?? socket;
  if (!carrier.destroyed) carrier.resetAndDestroy();
  if (carrier !== socket) socket.destroy();
}

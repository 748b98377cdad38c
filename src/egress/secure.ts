/**
 * TLS over a connection that stands (RFC 8446, RFC 9525). The certificate is always verified against the name that was dialled; there is no
 * option, and the environment has none either (`NODE_TLS_REJECT_UNAUTHORIZED` is overruled).
 */
import { isIP, type Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { ownEmitter } from '../observe/own-emitter.ts';
import { codeOf, DialFailure } from './dial-failure.ts';

export type SecureOptions = {
  /** Name or address that the certificate must be good for. */
  readonly servername: string;
  /** Protocols to offer, the preferred one first (RFC 7301). */
  readonly alpn: readonly string[];
  /** Authorities to trust in place of the system's; PEM. */
  readonly ca?: string;
};

/** Destroys the connection when the handshake fails. Rejects with a `DialFailure` of kind `tls`, or with the signal's reason. */
export function secure(
  socket: Socket,
  options: SecureOptions,
  { signal }: { readonly signal: AbortSignal },
): Promise<TLSSocket> {
  const name = options.servername.endsWith('.') ? options.servername.slice(0, -1) : options.servername;
  return new Promise((resolve, reject) => {
    // Stays for good: between this handshake and the first listener of the next owner an error may come.
    const secured = ownEmitter(
      connect({
        socket,
        host: name,
        // RFC 6066 §3: a literal address is no server name.
        servername: isIP(name) === 0 ? name : '',
        ALPNProtocols: [...options.alpn],
        rejectUnauthorized: true,
        minVersion: 'TLSv1.2',
        ...(options.ca === undefined ? {} : { ca: options.ca }),
      }),
      (error) => {
        signal.removeEventListener('abort', giveUp);
        socket.destroy();
        reject(toDialFailure(error));
      },
    );
    const giveUp = (): void => {
      secured.destroy();
      socket.destroy();
      reject(signal.reason);
    };
    secured.once('secureConnect', () => {
      signal.removeEventListener('abort', giveUp);
      resolve(secured);
    });
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp, { once: true });
  });
}

function toDialFailure(error: unknown): DialFailure {
  const code = codeOf(error);
  return new DialFailure('tls', `${explain(code)}${code === '' ? '' : ` (${code})`}`, error);
}

function explain(code: string): string {
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return 'The certificate has expired';
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return 'The certificate is for another name';
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
      return 'The certificate is self-signed';
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
      return 'The certificate is of an unknown authority, or the chain is incomplete';
    case 'ECONNRESET':
      return 'The connection broke in the TLS handshake';
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
      return 'The receiver does not speak TLS at this port';
    default:
      return 'The TLS handshake failed';
  }
}

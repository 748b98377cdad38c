/**
 * Opens every outgoing connection (§6.8), with TLS where it is requested. Literals are judged directly; a name is resolved, and refused if
 * any of its addresses is (a name with public and private addresses is an attack or a mistake, and using the good ones would let it choose
 * the moment); the connection goes only to the judged addresses; the peer is checked before the first octet. Environment variables for
 * proxies are ignored. Knows no HTTP.
 */
import { isIP, type Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { ownEmitter } from '../observe/own-emitter.ts';
import { connectFirst, type OpenSocket } from './connect-first.ts';
import { codeOf, DialFailure, type DialTiming } from './dial-failure.ts';
import { type DestinationVerdict, type EgressPolicy, isLocalhost } from './policy.ts';
import { createResolver, type Lookup } from './resolve.ts';

export type DialerOptions = {
  readonly policy: Pick<EgressPolicy, 'judge'>;
  readonly egressDnsMs: number;
  /** For the connection and its TLS handshake together. */
  readonly egressConnectMs: number;
  /** Called once for every dial with a verdict, for the operator's log. */
  readonly onDecision?: (decision: DialDecision) => void;
  readonly lookup?: Lookup;
  readonly openSocket?: OpenSocket;
  /** Milliseconds that never go back; default: `performance.now`. */
  readonly monotonic?: () => number;
};

export type DialCall = {
  /** As in `new URL().hostname`, with or without the brackets of an IPv6 address. */
  readonly hostname: string;
  readonly port: number;
  /** Absent: no TLS. */
  readonly tls?: {
    /** Default: the hostname. */
    readonly servername?: string;
    /** Default: only `http/1.1`. */
    readonly alpn?: readonly string[];
    readonly ca?: string;
  };
  readonly signal?: AbortSignal;
  /** Updated during the dial, so that a caller that gives up knows the stage. */
  readonly progress?: DialProgress;
};

export type DialProgress = {
  phase: 'dns' | 'connect' | 'tls' | 'done';
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
};

export type Dialled = {
  readonly socket: Socket;
  readonly address: string;
  /** The protocol that ALPN chose; undefined without TLS or a choice. */
  readonly alpnProtocol: string | undefined;
  readonly timing: DialTiming;
};

/** `address`: the one that decided, or the first that was permitted. Not for the owner of an endpoint: it may be private. */
export type DialDecision =
  | {
      readonly outcome: 'allowed';
      readonly hostname: string;
      readonly port: number;
      readonly address: string;
    }
  | {
      readonly outcome: 'refused';
      readonly hostname: string;
      readonly port: number;
      readonly address: string;
      readonly reason: 'address' | 'port' | 'own-listener';
      readonly why: string;
    };

/** The refused address and the reason; for operators only. */
export type RefusedBy = {
  readonly address: string;
  readonly reason: 'address' | 'port' | 'own-listener';
  readonly why: string;
};

/** Rejects with a `DialFailure`, or with the reason of the call's signal. */
export type Dial = (call: DialCall) => Promise<Dialled>;

export function createDialer(options: DialerOptions): Dial {
  const { policy, openSocket, monotonic = () => performance.now() } = options;
  const resolve = createResolver({
    monotonic,
    ...(options.lookup === undefined ? {} : { lookup: options.lookup }),
  });

  function permittedAddresses(hostname: string, port: number, found: readonly string[]): readonly string[] {
    const addresses = isLocalhost(hostname) ? permittedOf(found, port) : found;
    for (const address of addresses) {
      const verdict = policy.judge(address, port);
      if (verdict.allowed) continue;
      const { reason, why } = verdict;
      options.onDecision?.({ outcome: 'refused', hostname, port, address, reason, why });
      throw new DialFailure('refused', explainRefusal(verdict), { address, reason, why } satisfies RefusedBy);
    }
    options.onDecision?.({ outcome: 'allowed', hostname, port, address: addresses[0] ?? '' });
    return addresses;
  }

  /** `localhost` is two addresses of one machine, of which an allow-list often names one: that one suffices. */
  function permittedOf(addresses: readonly string[], port: number): readonly string[] {
    const permitted = addresses.filter((address) => policy.judge(address, port).allowed);
    return permitted.length > 0 ? permitted : addresses;
  }

  return async ({ hostname: given, port, tls, signal, progress = newProgress() }) => {
    const hostname = given.startsWith('[') ? given.slice(1, -1) : given;
    const startedMs = monotonic();
    const isName = isIP(hostname) === 0;
    const addresses = isName
      ? await within(
          options.egressDnsMs,
          () => new DialFailure('dns', 'The lookup of the name timed out', lateLookup),
          signal,
          async (ended) => permittedAddresses(hostname, port, await resolve(hostname, ended)),
        )
      : permittedAddresses(hostname, port, [hostname]);
    if (isName) progress.dnsMs = monotonic() - startedMs;
    return within(
      options.egressConnectMs,
      () => lateConnection(progress),
      signal,
      async (ended) => {
        progress.phase = 'connect';
        const connectingMs = monotonic();
        const sockets = openSocket === undefined ? {} : { openSocket };
        const { socket, address } = await connectFirst(addresses, port, { signal: ended, ...sockets });
        progress.connectMs = monotonic() - connectingMs;
        if (tls === undefined) {
          progress.phase = 'done';
          return { socket, address, alpnProtocol: undefined, timing: timingOf(progress) };
        }
        progress.phase = 'tls';
        const securingMs = monotonic();
        const { servername = hostname, alpn = ['http/1.1'], ca } = tls;
        const trusted = ca === undefined ? {} : { ca };
        const secured = await secure(socket, { servername, alpn, ...trusted }, { signal: ended });
        progress.tlsMs = monotonic() - securingMs;
        progress.phase = 'done';
        const alpnProtocol = secured.alpnProtocol === false ? undefined : (secured.alpnProtocol ?? undefined);
        return { socket: secured, address, alpnProtocol, timing: timingOf(progress) };
      },
    );
  };
}

/** What operators may know of a failure of kind `refused`; undefined if no address was judged. */
export function refusedBy({ kind, cause }: DialFailure): RefusedBy | undefined {
  if (kind !== 'refused' || typeof cause !== 'object' || cause === null) return undefined;
  if (!('address' in cause && 'reason' in cause && 'why' in cause)) return undefined;
  return cause as RefusedBy;
}

/** Whether the lookup timed out; other failures of kind `dns` had an answer. */
export function isLateLookup({ kind, cause }: DialFailure): boolean {
  return kind === 'dns' && cause === lateLookup;
}

const lateLookup = 'late';

export function newProgress(): DialProgress {
  return { phase: 'dns', dnsMs: null, connectMs: null, tlsMs: null };
}

function timingOf({ dnsMs, connectMs, tlsMs }: DialProgress): DialTiming {
  return { dnsMs, connectMs, tlsMs };
}

function lateConnection({ phase }: DialProgress): DialFailure {
  const what = phase === 'tls' ? 'The TLS handshake timed out' : 'The connection timed out';
  return new DialFailure('timeout', what);
}

/** Names neither the address nor its network, so that no one outside learns what a private name resolves to. */
function explainRefusal(verdict: DestinationVerdict & { readonly allowed: false }): string {
  if (verdict.reason === 'port') return `Webhooks are not sent to this port (${verdict.why})`;
  return 'The host has an address that is not permitted';
}

/** Runs work with a signal that aborts at the timeout or when the caller gives up. */
async function within<T>(
  timeoutMs: number,
  late: () => DialFailure,
  signal: AbortSignal | undefined,
  work: (ended: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const giveUp = (): void => controller.abort(signal?.reason);
  if (signal?.aborted) giveUp();
  else signal?.addEventListener('abort', giveUp, { once: true });
  const timer = setTimeout(() => controller.abort(late()), timeoutMs);
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', giveUp);
  }
}

type SecureOptions = {
  /** Name or address for which the certificate must be valid. */
  readonly servername: string;
  readonly alpn: readonly string[];
  /** Trusted authorities in place of the system's; PEM. */
  readonly ca?: string;
};

/**
 * Starts TLS on an open connection (RFC 8446, RFC 9525). The certificate is always verified against the dialled name; no option disables it,
 * nor does the environment (`NODE_TLS_REJECT_UNAUTHORIZED` is overridden).
 *
 * Destroys the connection when the handshake fails. Rejects with a `DialFailure` of kind `tls`, or with the signal's reason.
 */
function secure(
  socket: Socket,
  options: SecureOptions,
  { signal }: { readonly signal: AbortSignal },
): Promise<TLSSocket> {
  const name = options.servername.endsWith('.') ? options.servername.slice(0, -1) : options.servername;
  return new Promise((resolve, reject) => {
    // Never removed: an error may occur between this handshake and the first listener of the next owner.
    const secured = ownEmitter(
      connect({
        socket,
        host: name,
        // RFC 6066 §3: a literal address is not a server name.
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
      return 'The certificate has an unknown issuer, or its chain is incomplete';
    case 'ECONNRESET':
      return 'The connection broke in the TLS handshake';
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
      return 'The receiver does not use TLS at this port';
    default:
      return 'The TLS handshake failed';
  }
}

/**
 * Opens every outgoing connection (§6.8), with TLS where it is requested. Literals are judged directly; a name is resolved, and refused if
 * any of its addresses is (a name with public and private addresses is an attack or a mistake, and using the good ones would let it choose
 * the moment); the connection goes only to the judged addresses; the peer is checked before the first octet. Environment variables for
 * proxies are ignored. Knows no HTTP.
 */
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { isSameAddress, parseAddress, unmapAddress } from './address.ts';
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

type DialCall = {
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

/** The permitted addresses of a host, and the duration of the lookup in milliseconds; null for an address. */
export type FindAddresses = (
  hostname: string,
  port: number,
  signal: AbortSignal | undefined,
) => Promise<{ readonly addresses: readonly string[]; readonly dnsMs: number | null }>;

/** The result rejects with a `DialFailure`, or with the reason of the signal. */
export function createAddressFinder(
  options: Omit<DialerOptions, 'egressConnectMs' | 'openSocket'>,
): FindAddresses {
  const { policy, lookup, monotonic = () => performance.now() } = options;
  const resolve = createResolver(lookup, monotonic);

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

  return async (hostname, port, signal) => {
    if (isIP(hostname) !== 0)
      return { addresses: permittedAddresses(hostname, port, [hostname]), dnsMs: null };
    const startedMs = monotonic();
    const addresses = await within(
      options.egressDnsMs,
      () => new DialFailure('dns', 'The lookup of the name timed out', lateLookup),
      signal,
      async (ended) => permittedAddresses(hostname, port, await resolve(hostname, ended)),
    );
    return { addresses, dnsMs: monotonic() - startedMs };
  };
}

export function createDialer(options: DialerOptions): Dial {
  const { openSocket, monotonic = () => performance.now() } = options;
  const find = createAddressFinder(options);

  return async ({ hostname: given, port, tls, signal, progress = newProgress() }) => {
    const hostname = given.startsWith('[') ? given.slice(1, -1) : given;
    const { addresses, dnsMs } = await find(hostname, port, signal);
    progress.dnsMs = dnsMs;
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

/** True if the lookup timed out; other failures of kind `dns` had an answer. */
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

/**
 * Starts TLS on an open connection (RFC 8446, RFC 9525). The certificate is always verified against the dialled name; no option disables it,
 * nor does the environment (`NODE_TLS_REJECT_UNAUTHORIZED` is overridden).
 *
 * @param options.servername name or address for which the certificate must be valid @param options.ca trusted authorities in place of the system's; PEM
 *
 * Destroys the connection when the handshake fails. Rejects with a `DialFailure` of kind `tls`, or with the signal's reason.
 */
function secure(
  socket: Socket,
  options: { readonly servername: string; readonly alpn: readonly string[]; readonly ca?: string },
  { signal }: { readonly signal: AbortSignal },
): Promise<TLSSocket> {
  const name = options.servername.endsWith('.') ? options.servername.slice(0, -1) : options.servername;
  return new Promise((resolve, reject) => {
    // Never removed: an error may occur between this handshake and the first listener of the next owner.
    const secured = ownEmitter(
      connectTls({
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
        reject(tlsFailure(error));
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

function tlsFailure(error: unknown): DialFailure {
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

// Opens a TCP connection to the first of several addresses that accepts one, like RFC 8305 §5: the next is tried when one fails, or after a
// short delay in parallel. The addresses are literals, so nothing is resolved, and the socket's peer is checked before anything is written to
// it.

/** Opens a connection to an address; the socket emits `connect` or `error`. */
type OpenSocket = (address: string, port: number) => Socket;

/** RFC 8305 §5: "Connection Attempt Delay", 250 ms recommended. */
const attemptDelayMs = 250;

const attemptsMax = 8;

type FirstConnection = { readonly socket: Socket; readonly address: string };

/** Rejects with a `DialFailure` if no address accepted a connection, or with the signal's reason. Needs at least one address. */
function connectFirst(
  addresses: readonly string[],
  port: number,
  { signal, openSocket = openTcp }: { readonly signal: AbortSignal; readonly openSocket?: OpenSocket },
): Promise<FirstConnection> {
  const candidates = interleave(addresses).slice(0, attemptsMax);
  const pending = new Set<Socket>();
  let next = 0;
  let timer: NodeJS.Timeout | undefined;
  let failure: unknown;

  return new Promise((resolve, reject) => {
    const finish = (winner?: Socket): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      if (winner !== undefined) pending.delete(winner);
      for (const socket of pending) socket.destroy();
      pending.clear();
      next = candidates.length;
    };
    const giveUp = (): void => {
      finish();
      reject(signal.reason);
    };
    const fail = (error: unknown): void => {
      failure ??= error;
      if (next < candidates.length) startNext();
      else if (pending.size === 0) {
        finish();
        reject(connectionFailure(failure));
      }
    };
    const startNext = (): void => {
      clearTimeout(timer);
      const address = candidates[next];
      if (address === undefined) return;
      next += 1;
      const socket = openSocket(address, port);
      pending.add(socket);
      socket.on('error', (error) => {
        if (pending.delete(socket)) fail(error);
      });
      socket.once('connect', () => {
        if (!pending.has(socket)) return;
        const other = judgePeer(socket, address);
        if (other === undefined) {
          finish(socket);
          resolve({ socket, address });
          return;
        }
        pending.delete(socket);
        socket.destroy();
        fail(other);
      });
      if (next < candidates.length) timer = setTimeout(startNext, attemptDelayMs);
    };
    if (signal.aborted) {
      giveUp();
      return;
    }
    signal.addEventListener('abort', giveUp, { once: true });
    startNext();
  });
}

function openTcp(address: string, port: number): Socket {
  const options = { host: address, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 };
  return ownEmitter(connect(options), ignoreError);
}

/** The last line of defence: whatever the layers below did, the peer must be the address that was judged. */
function judgePeer(socket: Socket, address: string): DialFailure | undefined {
  const peer = parseAddress(socket.remoteAddress ?? '');
  const wanted = parseAddress(address);
  if (peer !== undefined && wanted !== undefined && isSameAddress(unmapAddress(peer), unmapAddress(wanted))) {
    return undefined;
  }
  return new DialFailure('refused', 'The connection led to another address than the one that was permitted');
}

/** Alternates the versions, beginning with that of the first address, so that a version without a route costs one delay (RFC 8305 §4). */
function interleave(addresses: readonly string[]): readonly string[] {
  if (addresses.length === 1) return addresses;
  const isIpv6 = (address: string): boolean => address.includes(':');
  const first = addresses.filter((address) => isIpv6(address) === isIpv6(addresses[0] ?? ''));
  const second = addresses.filter((address) => !first.includes(address));
  const length = Math.max(first.length, second.length);
  return Array.from({ length }, (_, at) => [first[at], second[at]])
    .flat()
    .filter((address) => address !== undefined);
}

function connectionFailure(error: unknown): DialFailure {
  if (error instanceof DialFailure) return error;
  const code = codeOf(error);
  const said = code === 'ECONNREFUSED' ? 'The connection was refused' : 'No connection could be made';
  return new DialFailure('connect', `${said}${code === '' ? '' : ` (${code})`}`, error);
}

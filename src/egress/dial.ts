/**
 * The only way out of the house (§6.8): a name or address and a port to a connection, TLS included where it is asked for. In this order:
 * literals are judged as they stand; a name is looked up, and refused if any of its addresses is (a name that mixes public and private
 * addresses is an attack or a mistake, and taking the good ones would let it choose the moment); the connection goes to the addresses that
 * were judged and to no later answer; who is at the other end is checked before the first octet. Environment variables that name proxies
 * mean nothing here. Knows no HTTP.
 */
import type { Socket } from 'node:net';
import { isIP } from 'node:net';
import { connectFirst, type OpenSocket } from './connect-first.ts';
import { DialFailure, type DialTiming } from './dial-failure.ts';
import { type DestinationVerdict, type EgressPolicy, isLocalhost } from './policy.ts';
import { createResolver, type Lookup } from './resolve.ts';
import { secure } from './secure.ts';

export type DialerOptions = {
  readonly policy: Pick<EgressPolicy, 'judge'>;
  /** For the name. */
  readonly egressDnsMs: number;
  /** For the connection and its TLS handshake together. */
  readonly egressConnectMs: number;
  /** For the operator's log: told once of every dial that came to a verdict. */
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
  /** Left out: no TLS. */
  readonly tls?: {
    /** Default: the hostname. */
    readonly servername?: string;
    /** Default: `http/1.1` alone. */
    readonly alpn?: readonly string[];
    readonly ca?: string;
  };
  readonly signal?: AbortSignal;
  /** Written to as the dial goes on, so that who gives up meanwhile can say where it stood. */
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
  /** The address of the peer. */
  readonly address: string;
  /** What ALPN chose; undefined without TLS, or when nothing was chosen. */
  readonly alpnProtocol: string | undefined;
  readonly timing: DialTiming;
};

/** `address`: the one that decided, or the first of those that were let through. Of no use to the owner of an endpoint: it may be private. */
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

/** Which address the guard refused, and why; for operators alone. */
export type RefusedBy = {
  readonly address: string;
  readonly reason: 'address' | 'port' | 'own-listener';
  readonly why: string;
};

/** Rejects with a `DialFailure`, or with the reason of the call's signal. */
export type Dial = (call: DialCall) => Promise<Dialled>;

/** A dialer under one policy. */
export function createDialer(options: DialerOptions): Dial {
  const { policy, openSocket, monotonic = () => performance.now() } = options;
  const resolve = createResolver({
    monotonic,
    ...(options.lookup === undefined ? {} : { lookup: options.lookup }),
  });

  /** The addresses to try, all of them permitted. */
  function vet(hostname: string, port: number, found: readonly string[]): readonly string[] {
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

  /** `localhost` is two addresses of one machine, of which an allow-list often names one: that one will do. */
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
          () => new DialFailure('dns', 'The name did not resolve in time', lateLookup),
          signal,
          async (ended) => vet(hostname, port, await resolve(hostname, ended)),
        )
      : vet(hostname, port, [hostname]);
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

/** What of a failure of kind `refused` operators may know; undefined where it was no address that was judged. */
export function refusedBy({ kind, cause }: DialFailure): RefusedBy | undefined {
  if (kind !== 'refused' || typeof cause !== 'object' || cause === null) return undefined;
  if (!('address' in cause && 'reason' in cause && 'why' in cause)) return undefined;
  return cause as RefusedBy;
}

/** Whether the lookup took too long; others of kind `dns` had an answer. */
export function isLateLookup({ kind, cause }: DialFailure): boolean {
  return kind === 'dns' && cause === lateLookup;
}

const lateLookup = 'late';

/** A record for `DialCall.progress`. */
export function newProgress(): DialProgress {
  return { phase: 'dns', dnsMs: null, connectMs: null, tlsMs: null };
}

function timingOf({ dnsMs, connectMs, tlsMs }: DialProgress): DialTiming {
  return { dnsMs, connectMs, tlsMs };
}

function lateConnection({ phase }: DialProgress): DialFailure {
  const what = phase === 'tls' ? 'The TLS handshake did not end in time' : 'No connection was made in time';
  return new DialFailure('timeout', what);
}

/** Names neither the address nor its network: what a private name resolves to is nobody's business outside. */
function explainRefusal(verdict: DestinationVerdict & { readonly allowed: false }): string {
  if (verdict.reason === 'port') return `Webhooks are not sent to this port (${verdict.why})`;
  return 'The host has an address that is not permitted';
}

/** Runs work with a signal that ends it when the time is over or the caller gives up. */
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

/**
 * Connects a UDP socket to a host and port (RFC 9298 §3.1). All addresses of a name are judged, as in the egress
 * dialler; the first with a route is used, because UDP has no answer by which to choose. Connected, so that the system
 * drops datagrams from elsewhere and reports ICMP errors.
 *
 * Node leaves the Don't Fragment bit to the system, which sets it on Linux up to the known path MTU.
 */
import { createSocket, type Socket } from 'node:dgram';
import { isIP, isIPv6 } from 'node:net';
import type { RefusedBy } from '../../egress/dial.ts';
import { DialFailure } from '../../egress/dial-failure.ts';
import { type EgressPolicy, isLocalhost } from '../../egress/policy.ts';
import type { Resolve } from '../../egress/resolve.ts';
import { ignoreError, ownEmitter } from '../../observe/own-emitter.ts';
import type { Destination } from '../destination.ts';

export type UdpSocketOptions = {
  readonly resolve: Resolve;
  /** The address policy only: admission has checked the port. */
  readonly judge: EgressPolicy['judge'];
  readonly egressDnsMs: number;
  readonly monotonic: () => number;
};

export type ConnectedSocket = {
  readonly socket: Socket;
  /** The peer's address, in the spelling in which the socket reports senders. */
  readonly address: string;
  readonly port: number;
  /** Duration of the lookup; null for an address. */
  readonly dnsMs: number | null;
};

/**
 * Rejects with a `DialFailure`, whose `cause` names the refused address to operators, or with the reason of the signal.
 * Only a lookup needs a timeout: connecting UDP sends nothing.
 */
export async function openUdpSocket(
  options: UdpSocketOptions,
  { host, port }: Destination,
  signal: AbortSignal,
): Promise<ConnectedSocket> {
  const { judge, monotonic } = options;
  const startedMs = monotonic();
  const isName = isIP(host) === 0;
  const found = isName ? await lookUp(options, host, signal) : [host];
  const dnsMs = isName ? monotonic() - startedMs : null;
  let failure = new DialFailure('dns', 'The name has no address');
  for (const address of permitted(judge, found, host, port)) {
    signal.throwIfAborted();
    try {
      return { ...(await connect(address, port, judge)), dnsMs };
    } catch (error) {
      if (error instanceof DialFailure) throw error;
      failure = new DialFailure('connect', 'There is no route to the destination', error);
    }
  }
  throw failure;
}

async function lookUp(
  { resolve, egressDnsMs }: UdpSocketOptions,
  host: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const late = new AbortController();
  const giveUp = () => late.abort(new DialFailure('timeout', 'The lookup of the name timed out'));
  const timer = setTimeout(giveUp, egressDnsMs);
  try {
    return await resolve(host, AbortSignal.any([signal, late.signal]));
  } finally {
    clearTimeout(timer);
  }
}

/** All addresses or none: a name with a refused address is refused. For `localhost`, the permitted ones suffice. */
function permitted(
  judge: EgressPolicy['judge'],
  addresses: readonly string[],
  host: string,
  port: number,
): readonly string[] {
  const good = addresses.filter((address) => judge(address, port).allowed);
  if (isLocalhost(host) && good.length > 0) return good;
  for (const address of addresses) mustBePermitted(judge, address, port);
  return good;
}

function mustBePermitted(judge: EgressPolicy['judge'], address: string, port: number): void {
  const verdict = judge(address, port);
  if (verdict.allowed) return;
  const { reason, why } = verdict;
  const by: RefusedBy = { address, reason, why };
  throw new DialFailure('refused', 'The host has an address that is not permitted', by);
}

type Peer = Omit<ConnectedSocket, 'dnsMs'>;

function connect(address: string, port: number, judge: EgressPolicy['judge']): Promise<Peer> {
  const { promise, resolve, reject } = Promise.withResolvers<Peer>();
  // ICMP errors may arrive before the tunnel listens, or after it has ended.
  const socket = ownEmitter(createSocket(isIPv6(address) ? 'udp6' : 'udp4'), ignoreError);
  const fail = (error: unknown): void => {
    socket.close();
    reject(error);
  };
  socket.once('error', fail);
  // Node reports a failure to the callback of `connect`, and one of binding as an event.
  socket.connect(port, address, (error?: unknown) => {
    socket.off('error', fail);
    try {
      if (error !== undefined && error !== null) throw error;
      const { address: peer } = socket.remoteAddress();
      mustBePermitted(judge, peer, port);
      resolve({ socket, address: peer, port });
    } catch (failure) {
      fail(failure);
    }
  });
  return promise;
}

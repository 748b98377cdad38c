/**
 * Opens a TCP connection to the first of several addresses that accepts one, like RFC 8305 §5: the next is tried when one fails, or after a
 * short delay in parallel. The addresses are literals, so nothing is resolved, and the socket's peer is checked before anything is written to
 * it.
 */
import { connect, type Socket } from 'node:net';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { isSameAddress, parseAddress, unmapAddress } from './address.ts';
import { codeOf, DialFailure } from './dial-failure.ts';

/** Opens a connection to an address; the socket emits `connect` or `error`. */
export type OpenSocket = (address: string, port: number) => Socket;

/** RFC 8305 §5: "Connection Attempt Delay", 250 ms recommended. */
const attemptDelayMs = 250;

const attemptsMax = 8;

export type FirstConnection = { readonly socket: Socket; readonly address: string };

/** Rejects with a `DialFailure` if no address accepted a connection, or with the signal's reason. Needs at least one address. */
export function connectFirst(
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
        reject(toDialFailure(failure));
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

function toDialFailure(error: unknown): DialFailure {
  if (error instanceof DialFailure) return error;
  const code = codeOf(error);
  const said = code === 'ECONNREFUSED' ? 'The connection was refused' : 'No connection could be made';
  return new DialFailure('connect', `${said}${code === '' ? '' : ` (${code})`}`, error);
}

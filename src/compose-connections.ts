/**
 * Wires what leads elsewhere (§4.10): the tunnel, connect-udp and requests for other servers, behind one desk that admits, one dialer and one policy of
 * addresses. Apart from compose.ts because of its size alone; the same rule holds, that nothing is reached but by argument.
 */
import { proxyChallengesFor } from './auth/challenges.ts';
import type { Accounts } from './compose-accounts.ts';
import type { Configuration } from './config/configuration.ts';
import type { Settings } from './config/settings.ts';
import { createHostLists } from './config/tunnel.ts';
import { createForward } from './connections/forward/forward.ts';
import type { HttpProxy } from './connections/proxy.ts';
import { createAdmission } from './connections/tunnel/admission.ts';
import { createProxy } from './connections/tunnel/proxy.ts';
import { createUdp } from './connections/udp/udp.ts';
import { createDialer } from './egress/dial.ts';
import type { OwnListener } from './egress/own-listeners.ts';
import { createEgressPolicy } from './egress/policy.ts';
import { createResolver } from './egress/resolve.ts';
import type { Observe } from './observe/observation.ts';
import type { CallerAddress } from './resources/rate-limit/caller-address.ts';

export type ConnectionsOptions = {
  readonly configuration: Configuration;
  readonly settings: Settings;
  readonly observe: Observe;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly accounts: Pick<Accounts, 'authenticateProxy'>;
  readonly addressOf: CallerAddress;
  /** Where the program listens: no tunnel leads there, and a request for it is its own. */
  readonly ownListeners: () => readonly OwnListener[];
};

/** Undefined where the tunnel is switched off: CONNECT is then answered as by any server that is no proxy. */
export function composeConnections(options: ConnectionsOptions): HttpProxy | undefined {
  const { configuration, settings, observe, clock, ownListeners, addressOf } = options;
  if (settings.tunnel === 'off') return undefined;
  const monotonic = (): number => performance.now();
  const { judge } = createEgressPolicy({ ...settings, everyPort: true, ownListeners });
  const dial = createDialer({ ...settings, policy: { judge }, monotonic });
  const desk = createAdmission({
    ...{ settings, observe, clock, monotonic, addressOf },
    authenticate: options.accounts.authenticateProxy,
    challengesFor: proxyChallengesFor,
    hostsOf: createHostLists(configuration.tunnel),
  });
  const forward = createForward({
    ...{ admission: desk.admit, dial, limits: settings, monotonic },
    ownOrigins: () => originsOf(ownListeners(), settings.publicUrl),
  });
  const udp = createUdp({
    ...{ admission: desk.admit, judge, limits: settings, observe, monotonic, isForeign: forward.isForeign },
    resolve: createResolver({ monotonic }),
    egressDnsMs: settings.egressDnsMs,
  });
  return createProxy({ settings, desk, dial, forward, udp, monotonic });
}

/** `host:port` of each. */
function originsOf(listeners: readonly OwnListener[], publicUrl: string | undefined): readonly string[] {
  const origins = listeners.map(({ address, port }) =>
    address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`,
  );
  if (publicUrl === undefined) return origins;
  const { hostname, port, protocol } = new URL(publicUrl);
  return [...origins, `${hostname}:${port === '' ? defaultPort(protocol) : port}`];
}

function defaultPort(protocol: string): number {
  return protocol === 'https:' ? 443 : 80;
}

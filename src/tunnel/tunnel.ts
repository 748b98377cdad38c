/** Composes the tunnel (§4.10): CONNECT, connect-udp and forwarding share one admission, dialler and policy. */
import { proxyChallengesFor } from '../accounts/challenges.ts';
import type { Configuration } from '../config/configuration.ts';
import type { Settings } from '../config/settings.ts';
import { createHostLists } from '../config/tunnel.ts';
import { createDialer, type Dial } from '../egress/dial.ts';
import type { OwnListener } from '../egress/own-listeners.ts';
import { createEgressPolicy } from '../egress/policy.ts';
import { createResolver } from '../egress/resolve.ts';
import type { CallerAddress } from '../kernel/rate-limit/caller-address.ts';
import type { Observe } from '../observe/observation.ts';
import { type AdmissionDesk, type AdmissionOptions, createAdmission } from './admission.ts';
import { readAuthority } from './destination.ts';
import { dialDestination } from './dial-destination.ts';
import { createForward } from './forward/forward.ts';
import type { HttpProxy, ProxyCall, ProxyReply } from './proxy-call.ts';
import { createRelays } from './relay.ts';
import { createUdp } from './udp/udp.ts';

export type TunnelOptions = {
  readonly configuration: Configuration;
  readonly settings: Settings;
  readonly observe: Observe;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly authenticate: AdmissionOptions['authenticate'];
  readonly addressOf: CallerAddress;
  readonly connections: AdmissionOptions['connections'];
  /** The program's own listeners: no tunnel may lead to them, and a request for them is not forwarded. */
  readonly ownListeners: () => readonly OwnListener[];
};

/** Undefined if the tunnel is off: CONNECT is then answered as by a server that is not a proxy. */
export function createTunnel(options: TunnelOptions): HttpProxy | undefined {
  const { configuration, settings, observe, connections, clock, ownListeners, addressOf } = options;
  if (settings.tunnel === 'off') return undefined;
  const monotonic = (): number => performance.now();
  const { judge } = createEgressPolicy({ ...settings, everyPort: true, ownListeners });
  const dial = createDialer({ ...settings, policy: { judge }, monotonic });
  const desk = createAdmission({
    ...{ settings, observe, connections, clock, monotonic, addressOf },
    authenticate: options.authenticate,
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

/** Returns `host:port` of each. */
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

type ProxyOptions = {
  readonly settings: { readonly tunnelIdleMs: number; readonly tunnelHalfClosedMs: number };
  readonly desk: AdmissionDesk;
  /** With a policy that has `everyPort`. */
  readonly dial: Dial;
  readonly forward: Pick<HttpProxy, 'isForeign' | 'forward'>;
  readonly udp: HttpProxy['udp'];
  /** Milliseconds that never go back. */
  readonly monotonic: () => number;
};

/**
 * Composes the proxy (§4.10): handles CONNECT here, and passes connect-udp and forwarded requests on; all share one
 * admission. It does not know HTTP on the wire: the server provides the client's side.
 */
export function createProxy({ settings, desk, dial, forward, udp, monotonic }: ProxyOptions): HttpProxy {
  const relays = createRelays({ ...settings, monotonic });

  async function connect(call: ProxyCall): Promise<ProxyReply> {
    const admission = await desk.admit(call, 'connect', readAuthority(call.request.target));
    if (!admission.ok) return admission;
    const { admitted } = admission;
    const dialled = await dialDestination(dial, call, admitted);
    if (!dialled.ok) return dialled;
    const { socket: destination, reached } = dialled;
    destination.allowHalfOpen = true;
    return {
      fields: [],
      join(client) {
        // `relay` exists before the first cut: `open` does not cut before it returns.
        const tunnel = admitted.open(reached, (why) => relay.cut(why));
        const relay = relays.join({
          client,
          destination,
          spend: admitted.account.spend,
          onOver: tunnel.close,
        });
      },
      abandon() {
        destination.destroy();
        admitted.release();
      },
    };
  }

  return {
    connect,
    udp,
    isForeign: forward.isForeign,
    forward: forward.forward,
    drain: desk.drain,
    count: desk.count,
  };
}

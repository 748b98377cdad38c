/** Composes the tunnel (§4.10): CONNECT, connect-udp and forwarding share one admission, dialler and policy. */
import { proxyChallengesFor } from '../accounts/challenges.ts';
import type { Configuration } from '../config/configuration.ts';
import type { Settings } from '../config/settings.ts';
import { createHostLists } from '../config/tunnel.ts';
import { createDialer, type Dial } from '../egress/dial.ts';
import type { OwnListener } from '../egress/own-listeners.ts';
import { createEgressPolicy } from '../egress/policy.ts';
import { createResolver } from '../egress/resolve.ts';
import type { Request, Response } from '../http/message.ts';
import { isUnderstoodTransferCoding } from '../http/request-fields.ts';
import { parseFieldList } from '../http/syntax/field-value.ts';
import { isHost } from '../http/syntax/uri.ts';
import type { CallerAddress } from '../kernel/rate-limit/caller-address.ts';
import type { Observe } from '../observe/observation.ts';
import { type Admission, type AdmissionDesk, type AdmissionOptions, createAdmission } from './admission.ts';
import { readAuthority } from './destination.ts';
import { dialDestination } from './dial-destination.ts';
import { type CarryLimits, carry } from './forward/carry.ts';
import { createIsForeign, type ForeignTarget, readForeignTarget } from './forward/foreign-target.ts';
import type { ForwardCall, HttpProxy, ProxyCall, ProxyReply } from './proxy-call.ts';
import type { Refusal } from './refusal.ts';
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

// Forwards requests to other servers (§4.10; RFC 9110 §7.6) under the policy of tunnels, over one connection for each.
// Only `http`: clients open a tunnel for `https` and `ws`, because a proxy that terminated TLS could read their
// content. Upgrade is removed with the other connection fields. No caching, no redirects, no retries.

export type ForwardOptions = {
  readonly admission: Admission;
  readonly dial: Dial;
  readonly limits: CarryLimits;
  /** `host:port` of everything that this program serves itself: listeners and the public URL. */
  readonly ownOrigins: () => readonly string[];
  /** This proxy's name in Via, a token (RFC 9110 §7.6.3). */
  readonly via?: string;
  readonly monotonic: () => number;
};

/** The part of `HttpProxy` (proxy-call.ts) that is implemented here. */
type Forward = {
  readonly isForeign: (request: Request) => boolean;
  readonly forward: (call: ForwardCall) => Promise<Response | undefined>;
};

export function createForward(options: ForwardOptions): Forward {
  const { admission, dial, limits, via = 'comity', monotonic } = options;
  return {
    isForeign: createIsForeign(options.ownOrigins),
    async forward(call) {
      const target = readForeignTarget(call.request);
      const admittance = await admission(call, 'forward', target?.destination);
      if (!admittance.ok) return admittance.refused;
      const { admitted } = admittance;
      const { destination } = admitted;
      const unsound = target === undefined ? undefined : judgeMessage(call.request, target);
      if (target === undefined || unsound !== undefined) {
        return admitted.refuse(unsound ?? { code: 'tunnel_target_invalid', error: 'http_request_error' });
      }
      const dialled = await dialDestination(dial, call, admitted);
      if (!dialled.ok) return dialled.refused;
      const { socket, reached } = dialled;
      const { path } = target;
      return carry({ call, admitted, socket, reached, destination, path, via, limits, monotonic });
    },
  };
}

/**
 * Returns the fault of a request that is to be forwarded (RFC 9112 §3.2, §6.1), or undefined. It does the kernel's
 * checks in the kernel's order, because no resource sees the request. The server has judged HTTP/1.0 framing.
 */
function judgeMessage(request: Request, { scheme }: ForeignTarget): Refusal | undefined {
  const { fields, version, method, rawFields } = request;
  const { host, hostCount } = fields;
  if (hostCount > 1 || (host === undefined ? version === '1.1' : !isHost(host))) {
    return bad('host_invalid');
  }
  if (fields.transferEncoding !== undefined && !isUnderstoodTransferCoding(fields.transferEncoding)) {
    return bad('transfer_coding_unknown');
  }
  if (scheme === 'https') return { ...bad('tunnel_target_invalid'), message: throughConnect };
  if (!namesFields(rawFields))
    return { ...bad('field_invalid'), message: 'Connection must be a list of tokens' };
  if (method === 'TRACE' && (fields.transferEncoding ?? fields.contentLength ?? '0') !== '0') {
    return bad('content_unexpected');
  }
  if (version !== '1.0' && fields.expect !== undefined && fields.expect.toLowerCase() !== '100-continue') {
    return bad('expectation_failed');
  }
  return undefined;
}

const throughConnect = 'https URLs need a tunnel: CONNECT host:443, then TLS within it';

function bad(code: Refusal['code']): Refusal {
  return { code, error: 'http_request_error' };
}

/** Fields that Connection names must be removed; a malformed list could leave some. */
function namesFields(rawFields: readonly string[]): boolean {
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    if (rawFields[at]?.toLowerCase() !== 'connection') continue;
    if (parseFieldList(rawFields[at + 1] ?? '') === undefined) return false;
  }
  return true;
}

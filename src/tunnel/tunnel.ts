/**
 * Composes the tunnel (§4.10): CONNECT, connect-udp and forwarded requests share one admission, dialler and policy. It
 * does not know HTTP on the wire: the server provides the client's side, and sends the 200 (server/upgrades.ts and
 * server/http2/http2-server.ts).
 */
import type { Settings } from '../config/settings.ts';
import { createHostLists, type TunnelAccess } from '../config/tunnel.ts';
import { createAddressFinder, createDialer, type Dial } from '../egress/dial.ts';
import { createEgressPolicy, type OwnListener } from '../egress/policy.ts';
import type { Request, Response } from '../http/message.ts';
import { isUnderstoodTransferCoding } from '../http/request-fields.ts';
import { parseFieldList } from '../http/syntax/field-value.ts';
import { isHost } from '../http/syntax/uri.ts';
import type { Observe } from '../observe/observation.ts';
import { type AdmissionDesk, type AdmissionOptions, createAdmission } from './admission.ts';
import { type Carriage, carry } from './carry.ts';
import { createUdp } from './connect-udp.ts';
import { createIsForeign, type ForeignTarget, readAuthority, readForeignTarget } from './destination.ts';
import { dialDestination } from './dial-destination.ts';
import type { ForwardCall, HttpProxy, ProxyCall, ProxyReply, Refusal } from './proxy-call.ts';
import { createRelays } from './relay.ts';

/** Parts of the program that a tunnel uses. */
type Surroundings = Pick<AdmissionOptions, 'addressOf' | 'authenticate' | 'connections'> & {
  /** The program's own listeners: no tunnel may lead to them, and a request for them is not forwarded. */
  readonly ownListeners: () => readonly OwnListener[];
};

/** Undefined if the tunnel is off: CONNECT is then answered as by a server that is not a proxy. */
export function createTunnel(
  services: { readonly settings: Settings; readonly observe: Observe; readonly clock: () => number },
  access: TunnelAccess,
  { ownListeners, ...caller }: Surroundings,
): HttpProxy | undefined {
  const { settings, observe } = services;
  if (settings.tunnel === 'off') return undefined;
  const { judge } = createEgressPolicy({ ...settings, everyPort: true, ownListeners });
  const dial = createDialer({ ...settings, policy: { judge } });
  const desk = createAdmission({
    ...{ ...services, ...caller },
    hostsOf: createHostLists(access),
  });
  const forward = createForward(desk, dial, {
    limits: settings,
    ownOrigins: () => originsOf(ownListeners(), settings.publicUrl),
  });
  const guard = { find: createAddressFinder({ ...settings, policy: { judge } }), judge };
  const udp = createUdp(desk, guard, { limits: settings, observe, isForeign: forward.isForeign });
  return {
    connect: createConnect(desk, dial, settings),
    udp,
    ...forward,
    drain: desk.drain,
    count: desk.count,
  };
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

/** @param dial with a policy that has `everyPort` */
export function createConnect(
  desk: Pick<AdmissionDesk, 'admit'>,
  dial: Dial,
  limits: Parameters<typeof createRelays>[0],
): HttpProxy['connect'] {
  const relays = createRelays(limits);
  return async (call: ProxyCall): Promise<ProxyReply> => {
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
  };
}

// Forwards requests to other servers (§4.10; RFC 9110 §7.6) under the policy of tunnels, over one connection for each.
// Only `http`: clients open a tunnel for `https` and `ws`, because a proxy that terminated TLS could read their
// content. Upgrade is removed with the other connection fields. No caching, no redirects, no retries.

/** @param own.ownOrigins `host:port` of everything that this program serves itself: listeners and the public URL */
export function createForward(
  desk: Pick<AdmissionDesk, 'admit'>,
  dial: Dial,
  { limits, ownOrigins }: Pick<Carriage, 'limits'> & { readonly ownOrigins: () => readonly string[] },
): Pick<HttpProxy, 'isForeign' | 'forward'> {
  return {
    isForeign: createIsForeign(ownOrigins),
    async forward(call: ForwardCall): Promise<Response | undefined> {
      const target = readForeignTarget(call.request);
      const admittance = await desk.admit(call, 'forward', target?.destination);
      if (!admittance.ok) return admittance.refused;
      const { admitted } = admittance;
      const unsound = target === undefined ? undefined : judgeMessage(call.request, target);
      if (target === undefined || unsound !== undefined) {
        return admitted.refuse(unsound ?? { code: 'tunnel_target_invalid', error: 'http_request_error' });
      }
      const dialled = await dialDestination(dial, call, admitted);
      if (!dialled.ok) return dialled.refused;
      const { socket, reached } = dialled;
      return carry({ call, admitted, socket, reached, path: target.path, limits });
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

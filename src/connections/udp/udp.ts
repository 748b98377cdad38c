/**
 * connect-udp (§4.10, rule 8; RFC 9298): admitted as every tunnel is, by the same credentials, ports, lists of hosts and budgets; the
 * destination by the egress guard. The answer says that a socket is open, and no more: nobody can say of UDP who listens (§3.1).
 *
 * `connect-ip` (RFC 9484) is not here: it needs a network interface of its own, which Node cannot open.
 */
import { DialFailure } from '../../egress/dial-failure.ts';
import type { Request } from '../../http/message.ts';
import { type Problem, problemStatus } from '../../http/problem.ts';
import { problems } from '../../http/problem-registry.ts';
import { parseUdpTarget } from '../../http/syntax/udp-target.ts';
import type { Observe } from '../../observe/observation.ts';
import type { ClientSide, ProxyCall, ProxyReply } from '../proxy.ts';
import type { Admission, Admitted } from '../tunnel/admission.ts';
import { type Destination, toDestination } from '../tunnel/destination.ts';
import { refusalOfFailure } from '../tunnel/dial-destination.ts';
import type { OpenTunnel } from '../tunnel/open-tunnels.ts';
import { type Refusal, refusalAnswer } from '../tunnel/refusal.ts';
import { handshakeProblem } from './handshake.ts';
import { type ConnectedSocket, openUdpSocket, type UdpSocketOptions } from './open-socket.ts';
import { UdpTunnel, type UdpTunnelLimits } from './udp-tunnel.ts';

export type UdpOptions = UdpSocketOptions & {
  readonly admission: Admission;
  readonly limits: UdpTunnelLimits;
  readonly observe: Observe;
  /** As in `HttpProxy`. */
  readonly isForeign: (request: Request) => boolean;
};

/** RFC 9297 §3.4. The server adds what HTTP/1.1 needs for 101. */
const fields = ['Capsule-Protocol', '?1'];

/** What `Proxy.udp` is. */
export function createUdp(options: UdpOptions): (call: ProxyCall) => Promise<ProxyReply> {
  const { admission, limits, observe, monotonic } = options;

  return async (call) => {
    const { request } = call;
    const problem = handshakeProblem(request) ?? targetProblem(request, options.isForeign);
    const destination = destinationOf(request);
    if (problem !== undefined || destination === undefined) {
      return { refused: refuseMalformed(request, problem ?? offTemplate, observe) };
    }
    const decision = await admission(call, 'udp', destination);
    if (!decision.ok) return { refused: decision.refused };
    const { admitted } = decision;
    try {
      const socket = await openUdpSocket(options, admitted.destination, call.signal);
      if (!call.signal.aborted) return opened(admitted, socket, limits, monotonic);
      socket.socket.close();
    } catch (error) {
      if (!call.signal.aborted) return { refused: admitted.refuse(explain(error)) };
    }
    admitted.release();
    return { refused: { status: problemStatus('destination_failed'), fields: [], content: null } };
  };
}

function opened(
  admitted: Admitted,
  destination: ConnectedSocket,
  limits: UdpTunnelLimits,
  monotonic: () => number,
): ProxyReply {
  const { socket, address, dnsMs } = destination;
  return {
    fields,
    join(client: ClientSide) {
      let open: OpenTunnel | undefined;
      const tunnel = new UdpTunnel({
        client,
        destination,
        limits,
        account: admitted.account,
        monotonic,
        onEnd: (why, sentBytes, receivedBytes) => open?.close(why, sentBytes, receivedBytes),
      });
      open = admitted.open({ address, dnsMs, connectMs: null }, (why) => tunnel.end(why));
      tunnel.start();
    },
    abandon() {
      socket.close();
      admitted.release();
    },
  };
}

const offTemplate: Problem = {
  code: 'tunnel_target_invalid',
  message: 'the target must be /.well-known/masque/udp/{host}/{port}/',
};

/**
 * An absolute target with `http` that names another server asks a proxy to hand the request on, which is not done with an Upgrade. One with `https`
 * is what clients of connect-udp make of the template, with whatever name they reach this server by; nothing hangs on that name.
 */
function targetProblem(request: Request, isForeign: UdpOptions['isForeign']): Problem | undefined {
  const isPlain = request.target.slice(0, plainScheme.length).toLowerCase() === plainScheme;
  if (!isPlain || !isForeign(request)) return undefined;
  return {
    code: 'tunnel_target_invalid',
    message: 'the target names another server: no Upgrade is handed on',
  };
}

const plainScheme = 'http://';

/** Undefined: the target is malformed. */
function destinationOf(request: Request): Destination | undefined {
  const target = parseUdpTarget(request.target);
  return target === undefined ? undefined : toDestination(target.host, String(target.port));
}

/** Only a lookup can be late: UDP makes no connection. */
function explain(error: unknown): Refusal {
  const refusal = refusalOfFailure(error);
  const isLate = error instanceof DialFailure && error.kind === 'timeout';
  return isLate ? { ...refusal, error: 'dns_timeout' } : refusal;
}

function refuseMalformed(request: Request, problem: Problem, observe: Observe) {
  const { code, message = problems[code].message } = problem;
  const nowhere = { host: '', port: 0, principal: undefined };
  const status = problemStatus(code);
  observe({
    kind: 'tunnel-refused',
    peer: request.peer,
    how: 'udp',
    ...nowhere,
    status,
    code,
    why: message,
  });
  return refusalAnswer({ code, message, error: 'http_request_error' }, request.fields.accept);
}

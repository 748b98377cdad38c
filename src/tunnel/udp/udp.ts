/**
 * connect-udp (§4.10.8; RFC 9298): admitted like every tunnel, by the same credentials, ports, host rules and limits;
 * the egress guard judges the destination. A success only says that a socket is open: UDP does not tell who listens
 * (§3.1). `connect-ip` (RFC 9484) is not supported, because Node cannot open the network interface that it needs.
 */
import { DialFailure } from '../../egress/dial-failure.ts';
import type { Request } from '../../http/message.ts';
import { type Problem, problemStatus } from '../../http/problem.ts';
import { problems } from '../../http/problem-registry.ts';
import { isHost } from '../../http/syntax/host.ts';
import { trimWhitespace } from '../../http/syntax/token.ts';
import { parseUdpTarget } from '../../http/syntax/udp-target.ts';
import type { Observe } from '../../observe/observation.ts';
import type { Admission, Admitted } from '../admission.ts';
import { type Destination, toDestination } from '../destination.ts';
import { refusalOfFailure } from '../dial-destination.ts';
import type { OpenTunnel } from '../open-tunnels.ts';
import type { ClientSide, ProxyCall, ProxyReply } from '../proxy-call.ts';
import { type Refusal, refusalAnswer } from '../refusal.ts';
import { type ConnectedSocket, openUdpSocket, type UdpSocketOptions } from './open-socket.ts';
import { UdpTunnel, type UdpTunnelLimits } from './udp-tunnel.ts';

export type UdpOptions = UdpSocketOptions & {
  readonly admission: Admission;
  readonly limits: UdpTunnelLimits;
  readonly observe: Observe;
  readonly isForeign: (request: Request) => boolean;
};

/** RFC 9297 §3.4. The server adds what HTTP/1.1 needs for 101. */
const fields = ['Capsule-Protocol', '?1'];

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
 * Refuses an absolute target with `http` that names another server: it asks a proxy to forward the request, which an
 * Upgrade cannot. Clients of connect-udp build an `https` one from the template with any name of this server, which is
 * ignored.
 */
function targetProblem(request: Request, isForeign: UdpOptions['isForeign']): Problem | undefined {
  const isPlain = request.target.slice(0, plainScheme.length).toLowerCase() === plainScheme;
  if (!isPlain || !isForeign(request)) return undefined;
  return {
    code: 'tunnel_target_invalid',
    message: 'the target names another server, and an Upgrade cannot be forwarded',
  };
}

const plainScheme = 'http://';

function destinationOf(request: Request): Destination | undefined {
  const target = parseUdpTarget(request.target);
  return target === undefined ? undefined : toDestination(target.host, String(target.port));
}

/** Only a lookup can time out: UDP makes no connection. */
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

const udpProtocol = 'connect-udp';

/**
 * Checks a request for connect-udp besides its target: over HTTP/1.1 a GET with Upgrade, Connection and one Host (RFC
 * 9298 §3.2), over HTTP/2 an extended CONNECT (§3.4), and no content framed by fields over either (RFC 9297 §3.2).
 * Capsule-Protocol is ignored: it is for intermediaries, and the protocol implies it (RFC 9297 §3.4). Undefined: valid.
 */
function handshakeProblem(request: Request): Problem | undefined {
  const { fields } = request;
  if (request.protocol === undefined) {
    if (request.version !== '1.1') return broken('connect-udp needs HTTP/1.1, or an extended CONNECT');
    if (request.method !== 'GET') return broken('connect-udp requires GET');
    if (fields.hostCount !== 1 || !isHost(fields.host ?? '')) return { code: 'host_invalid' };
    if (!hasToken(request, 'upgrade', udpProtocol)) return broken('Upgrade must name connect-udp');
    if (!hasToken(request, 'connection', 'upgrade')) return broken('Connection must name Upgrade');
    return fields.transferEncoding === undefined ? withoutLength(request) : withContent;
  }
  if (request.protocol !== udpProtocol) {
    return broken('the protocol of the extended CONNECT must be connect-udp');
  }
  // A `host` that differs from `:authority`.
  if (fields.hostCount > 1) return { code: 'host_invalid' };
  // HTTP/2 has no Transfer-Encoding: `fields.transferEncoding` marks a stream of unknown length.
  return withoutLength(request);
}

const withContent: Problem = { code: 'content_unexpected', message: 'connect-udp has no content' };

function withoutLength({ fields }: Request): Problem | undefined {
  return fields.contentLength === undefined ? undefined : withContent;
}

function broken(message: string): Problem {
  return { code: 'handshake_invalid', message };
}

/** True if the list field, on any number of lines, has the token, in any case. */
function hasToken({ rawFields }: Request, name: string, token: string): boolean {
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    if (rawFields[at]?.toLowerCase() !== name) continue;
    const members = (rawFields[at + 1] ?? '').split(',');
    if (members.some((member) => trimWhitespace(member).toLowerCase() === token)) return true;
  }
  return false;
}

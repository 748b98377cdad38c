/**
 * Who may open a tunnel where (§4.10), in one order for CONNECT, connect-udp and forwarded requests: is the program stopping (503), is the
 * target one (400), who asks (407), may it tunnel at all (403), to this port (403), to this host (403), and is there room for it (429; 503
 * where it is the program's own). Then it has a place, which it keeps until it says how it ended. What the name resolves to is judged
 * when it is dialled.
 *
 * Every refusal is one `tunnel-refused`; every tunnel that was opened one `tunnel-opened` and one `tunnel-closed`.
 */
import { partsOf } from '../../config/refuse-addresses.ts';
import { readPortRanges } from '../../egress/port-ranges.ts';
import type { Response } from '../../http/message.ts';
import { problems } from '../../http/problem-registry.ts';
import type { Known } from '../../model/credential.ts';
import { type HostRules, judgeHosts } from '../../model/host-rules.ts';
import { type Authenticated, isAdministrator } from '../../model/principal.ts';
import type { Observe, TunnelEnd, TunnelKind } from '../../observe/observation.ts';
import type { ProxyCall } from '../proxy.ts';
import { type Account, type BudgetSettings, createBudget, type Entry } from './budget.ts';
import { type Caller, type CallerOptions, createCallerOf } from './caller.ts';
import type { Destination } from './destination.ts';
import { type OpenTunnel, openTunnels, type Reached } from './open-tunnels.ts';
import { type Refusal, refusalAnswer } from './refusal.ts';

export type AdmissionSettings = BudgetSettings & { readonly tunnelPorts: string };

export type AdmissionOptions = CallerOptions & {
  readonly settings: AdmissionSettings;
  /** Lists that hold for the caller, its key's own last. */
  readonly hostsOf: (principal: Authenticated, known: Known) => readonly HostRules[];
  readonly observe: Observe;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Milliseconds that never go back. */
  readonly monotonic: () => number;
};

export type Admitted = {
  readonly known: Known;
  readonly principal: Authenticated;
  readonly destination: Destination;
  /** Octets in either direction are spent here; when it says false, the tunnel is to be cut with `bytes`. */
  readonly account: Account;
  /** Not opened after all: tells `tunnel-refused`, gives the place back and makes the answer. */
  readonly refuse: (refusal: Refusal) => Response;
  /** Not opened, and nobody is there to be told: gives the place back. */
  readonly release: () => void;
  /**
   * It is open: tells `tunnel-opened`. From now on `cut` may be called, once and never within this call, when the credential ends, when the
   * program stops; it must lead to `close`, with the reason given.
   */
  readonly open: (reached: Reached, cut: (why: TunnelEnd) => void) => OpenTunnel;
};

/** @param destination undefined: the target is malformed */
export type Admission = (
  call: ProxyCall,
  how: TunnelKind,
  destination: Destination | undefined,
) => Promise<
  { readonly ok: true; readonly admitted: Admitted } | { readonly ok: false; readonly refused: Response }
>;

export type AdmissionDesk = {
  readonly admit: Admission;
  /** From the call on everything is refused; what is open at the bound is cut. Resolves when nothing is open. */
  readonly drain: (boundMs: number) => Promise<void>;
  /** Places that are taken: what is being opened counts as well. */
  readonly count: () => number;
};

type Doubtful = { readonly refusal: Refusal; readonly principal?: Authenticated | undefined };

const drainRetrySeconds = 5;

export function createAdmission(options: AdmissionOptions): AdmissionDesk {
  const { settings, observe, hostsOf } = options;
  const budget = createBudget(settings, options.clock);
  const callerOf = createCallerOf(options);
  const ports = readPortRanges(partsOf(settings.tunnelPorts));
  const tunnels = openTunnels({ observe, monotonic: options.monotonic, count: budget.count });

  /** What the caller may not, by lists; else what a list in the mode `report` would have said. */
  function judgePlace({ known, principal }: Caller, { host, port }: Destination) {
    if (!isAdministrator(principal) && !principal.scopes.has('tunnel')) return { refusal: withoutScope };
    if (!ports.some(({ first, last }) => first <= port && port <= last)) {
      return { refusal: denied('tunnel_port_refused', `port ${port}`) };
    }
    const verdict = judgeHosts(hostsOf(principal, known), host);
    if (!verdict.allowed) return { refusal: denied('tunnel_host_refused', verdict.why) };
    return { reported: verdict.reported };
  }

  const admit: Admission = async (call, how, destination) => {
    const { request } = call;
    const refused = ({ refusal, principal }: Doubtful) => {
      const { host, port } = destination ?? { host: '', port: 0 };
      const { code, details, message, why = details ?? message ?? problems[code].message } = refusal;
      const { status } = problems[code];
      const { peer } = request;
      observe({ kind: 'tunnel-refused', peer, principal: principal?.id, how, host, port, status, code, why });
      return refusalAnswer(refusal, request.fields.accept);
    };
    const no = (doubtful: Doubtful) => ({ ok: false, refused: refused(doubtful) }) as const;
    if (tunnels.isDraining()) return no({ refusal: stopping });
    if (destination === undefined) return no({ refusal: malformed });
    const caller = await callerOf(request, how).catch((error: unknown): Doubtful => {
      observe({ kind: 'connection-failed', what: 'verifying a proxy credential', error });
      return { refusal: unverifiable };
    });
    if ('refusal' in caller) return no(caller);
    const { known, principal } = caller;
    const judged = judgePlace(caller, destination);
    if (judged.refusal !== undefined) return no({ refusal: judged.refusal, principal });
    // Asked again: it may have begun to stop meanwhile.
    if (tunnels.isDraining()) return no({ refusal: stopping, principal });
    const entry = budget.enter(principal.id);
    if (!entry.ok) return no({ refusal: withoutRoom(entry), principal });
    const { account } = entry.place;
    const giveBack = (): void => {
      entry.place.giveBack();
      tunnels.look();
    };
    const { reported } = judged;
    const admitted: Admitted = {
      known,
      principal,
      destination,
      account,
      refuse(refusal) {
        giveBack();
        return refused({ refusal, principal });
      },
      release: giveBack,
      open: (reached, cut) =>
        tunnels.open({ known, peer: request.peer, how, destination, reached, reported, cut, giveBack }),
    };
    return { ok: true, admitted };
  };

  return { admit, drain: tunnels.drain, count: budget.count };
}

const stopping: Refusal = {
  code: 'unavailable',
  error: 'http_request_denied',
  details: 'the proxy is stopping',
  retryAfterSeconds: drainRetrySeconds,
};
const unverifiable: Refusal = {
  code: 'unavailable',
  error: 'proxy_internal_error',
  details: 'credentials cannot be verified now',
  retryAfterSeconds: drainRetrySeconds,
};
const malformed: Refusal = { code: 'tunnel_target_invalid', error: 'http_request_error' };
const withoutScope: Refusal = {
  code: 'forbidden',
  error: 'http_request_denied',
  details: 'the credential has no scope "tunnel"',
};

function denied(code: 'tunnel_port_refused' | 'tunnel_host_refused', why: string): Refusal {
  return { code, error: 'http_request_denied', details: problems[code].message, why };
}

function withoutRoom({ reason, retryAfterSeconds }: Entry & { readonly ok: false }): Refusal {
  const error = 'connection_limit_reached';
  if (reason === 'bytes') return { code: 'tunnel_bytes_exhausted', error, retryAfterSeconds };
  if (reason === 'principal') return { code: 'tunnels_exhausted', error, retryAfterSeconds };
  return { code: 'unavailable', error, details: 'as many tunnels are open as may be', retryAfterSeconds };
}

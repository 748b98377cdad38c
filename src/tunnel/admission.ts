/**
 * Admits tunnels (§4.10), in one order for CONNECT, connect-udp and forwarded requests: draining (503), a malformed
 * target (400), the caller's credential (407), its scope (403), the port (403), the host (403), and the limits (429;
 * 503 for those of the program). An admitted tunnel has a place until it reports its end. The dialler judges the
 * resolved addresses later. Emits one `tunnel-refused` for each refusal, and one `tunnel-opened` and one
 * `tunnel-closed` for each opened tunnel.
 */

import type { Identified } from '../accounts/authenticate.ts';
import { commaSeparated } from '../config/refusals.ts';
import { readPortRanges } from '../egress/policy.ts';
import type { Request, Response } from '../http/message.ts';
import { type ProblemCode, problems } from '../http/problem-registry.ts';
import { type HostRules, judgeHosts } from '../model/host-rules.ts';
import { type Authenticated, isAdministrator, type Known } from '../model/principal.ts';
import type { Observe, TunnelEnd, TunnelKind } from '../observe/observation.ts';
import type { OpenConnections } from '../observe/open-connections.ts';
import { type Account, type BudgetSettings, createBudget, type Entry } from './budget.ts';
import type { Destination } from './destination.ts';
import { type OpenTunnel, openTunnels, type Reached } from './open-tunnels.ts';
import type { ProxyCall } from './proxy-call.ts';
import { type Refusal, refusalAnswer } from './refusal.ts';

export type AdmissionSettings = BudgetSettings & { readonly tunnelPorts: string };

export type AdmissionOptions = CallerOptions & {
  readonly settings: AdmissionSettings;
  /** Host rules of the caller, those of its key last. */
  readonly hostsOf: (principal: Authenticated, known: Known) => readonly HostRules[];
  readonly observe: Observe;
  readonly connections: Pick<OpenConnections, 'enter'>;
  readonly clock: () => number;
  readonly monotonic: () => number;
};

export type Admitted = {
  readonly known: Known;
  readonly principal: Authenticated;
  readonly destination: Destination;
  /** Counts octets in either direction; when it returns false, cut the tunnel with `bytes`. */
  readonly account: Account;
  /** The tunnel failed to open: emits `tunnel-refused`, releases the place and returns the response. */
  readonly refuse: (refusal: Refusal) => Response;
  /** The tunnel failed to open and the client has left: releases the place. */
  readonly release: () => void;
  /**
   * The tunnel is open: emits `tunnel-opened`. `cut` may then be called once, after this call has returned, when the
   * credential ends or the program stops; it must lead to `close` with the given reason.
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
  /** Refuses everything from the call on, and cuts open tunnels at the bound. Resolves when none is open. */
  readonly drain: (boundMs: number) => Promise<void>;
  /** Places in use, including those of tunnels that are being opened. */
  readonly count: () => number;
};

type Doubtful = { readonly refusal: Refusal; readonly principal?: Authenticated | undefined };

const drainRetrySeconds = 5;

export function createAdmission(options: AdmissionOptions): AdmissionDesk {
  const { settings, observe, hostsOf, monotonic, connections } = options;
  const budget = createBudget(settings, options.clock);
  const callerOf = createCallerOf(options);
  const ports = readPortRanges(commaSeparated(settings.tunnelPorts));
  const tunnels = openTunnels({ observe, monotonic, connections, count: budget.count });

  /** Returns the refusal of the port or host rules, else the objections of rules in the mode `report`. */
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
    // Checked again: a drain may have started during authentication.
    if (tunnels.isDraining()) return no({ refusal: stopping, principal });
    const entry = budget.enter(principal.id);
    if (!entry.ok) return no({ refusal: withoutRoom(entry), principal });
    const { account } = entry.place;
    const giveBack = (): void => {
      entry.place.giveBack();
      tunnels.look();
    };
    const { reported } = judged;
    const counted = countedBy(account);
    const { octets } = counted;
    const opening = { known, peer: request.peer, how, destination, reported, giveBack, octets };
    const admitted: Admitted = {
      known,
      principal,
      destination,
      account: counted,
      refuse(refusal) {
        giveBack();
        return refused({ refusal, principal });
      },
      release: giveBack,
      open: (reached, cut) => tunnels.open({ ...opening, reached, cut }),
    };
    return { ok: true, admitted };
  };

  return { admit, drain: tunnels.drain, count: budget.count };
}

/** The account of one tunnel, which also counts by itself. */
function countedBy(account: Account): Account & { readonly octets: () => number } {
  let octets = 0;
  return {
    spend(bytes) {
      octets += bytes;
      return account.spend(bytes);
    },
    octets: () => octets,
  };
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
  return { code: 'unavailable', error, details: 'the limit of open tunnels is reached', retryAfterSeconds };
}

type CallerOptions = {
  readonly authenticate: (
    proxyAuthorization: string | undefined,
    from: { readonly address: string; readonly requestId?: string | undefined },
  ) => Promise<Identified>;
  readonly challengesFor: (problem: ProblemCode) => string;
  readonly addressOf: (request: Request) => string;
};

type Caller = { readonly known: Known; readonly principal: Authenticated };

/**
 * Authenticates the caller of a tunnel (§4.10.5; RFC 9110 §11.7) by the credential in Proxy-Authorization only, since
 * Authorization is for the destination. An invalid one is answered 407 with the supported schemes, and too many
 * attempts 429, as at the login.
 */
function createCallerOf(
  options: CallerOptions,
): (request: Request, how: TunnelKind) => Promise<Caller | { readonly refusal: Refusal }> {
  return async (request, how) => {
    const { fields } = request;
    if (fields.repeated !== undefined) {
      return { refusal: { code: 'field_invalid', error: 'http_request_error', why: fields.repeated } };
    }
    // RFC 9298 §3 names a resource of an origin, so clients of connect-udp may authenticate as to an origin.
    const credential = fields.proxyAuthorization ?? (how === 'udp' ? fields.authorization : undefined);
    const requestId = request.id === '' ? undefined : request.id;
    const from = { address: options.addressOf(request), requestId };
    const judged = await options.authenticate(credential, from);
    if ('problem' in judged) {
      return { refusal: badCredential(options, judged.problem, judged.allowance?.retryAfterSeconds) };
    }
    if (!('scheme' in judged)) return { refusal: noCredential(options, fields.authorization !== undefined) };
    return { known: judged, principal: judged.principal };
  };
}

function badCredential(
  { challengesFor }: CallerOptions,
  problem: ProblemCode,
  retryAfterSeconds: number | undefined,
): Refusal {
  if (problems[problem].status !== 401) {
    const retry = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
    return { code: problem, error: 'http_request_denied', ...retry };
  }
  const code = problem === 'no_token_provided' ? 'proxy_credentials_required' : 'proxy_credentials_invalid';
  return { code, error: 'http_request_denied', challenges: challengesFor(problem), why: problem };
}

function noCredential({ challengesFor }: CallerOptions, hasAuthorization: boolean): Refusal {
  return {
    code: 'proxy_credentials_required',
    error: 'http_request_denied',
    challenges: challengesFor('no_token_provided'),
    ...(hasAuthorization
      ? { message: 'proxy credentials go into Proxy-Authorization, not Authorization' }
      : {}),
  };
}

/**
 * Admits tunnels (§4.10), in one order for CONNECT, connect-udp and forwarded requests: draining (503), a malformed
 * target (400), the caller's credential (407), its scope (403), the port (403), the host (403), and the limits (429;
 * 503 for those of the program). An admitted tunnel has a place until it reports its end. The dialler judges the
 * resolved addresses later. Emits one `tunnel-refused` for each refusal, and one `tunnel-opened` and one
 * `tunnel-closed` for each opened tunnel.
 */
import { type Identified, proxyChallengesFor } from '../accounts/authenticate.ts';
import { commaSeparated } from '../config/refusals.ts';
import type { Settings } from '../config/settings.ts';
import { readPortRanges } from '../egress/policy.ts';
import type { Request, Response } from '../http/message.ts';
import { type ProblemCode, problems } from '../http/problem-registry.ts';
import { memoryBounds } from '../memory/bounds.ts';
import { type HostRules, judgeHosts } from '../model/host-rules.ts';
import { type Authenticated, isAdministrator, type Known } from '../model/principal.ts';
import type { Observe, TunnelEnd, TunnelKind } from '../observe/observation.ts';
import type { OpenConnections } from '../observe/open-connections.ts';
import type { Destination } from './destination.ts';
import { type ProxyCall, type Refusal, refusalAnswer } from './proxy-call.ts';

export type AdmissionOptions = {
  readonly settings: BudgetSettings & Pick<Settings, 'tunnelPorts'>;
  readonly authenticate: (
    proxyAuthorization: string | undefined,
    from: { readonly address: string; readonly requestId?: string | undefined },
  ) => Promise<Identified>;
  readonly addressOf: (request: Request) => string;
  /** Host rules of the caller, those of its key last. */
  readonly hostsOf: (principal: Authenticated, known: Known) => readonly HostRules[];
  readonly observe: Observe;
  readonly connections: Pick<OpenConnections, 'enter'>;
  readonly clock: () => number;
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
type Admission = (
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
  const { settings, observe, hostsOf, connections } = options;
  const budget = createBudget(settings, options.clock);
  const callerOf = createCallerOf(options);
  const ports = readPortRanges(commaSeparated(settings.tunnelPorts));
  const tunnels = openTunnels({ observe, connections, count: budget.count });

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

type Caller = { readonly known: Known; readonly principal: Authenticated };

/**
 * Authenticates the caller of a tunnel (§4.10.5; RFC 9110 §11.7) by the credential in Proxy-Authorization only, since
 * Authorization is for the destination. An invalid one is answered 407 with the supported schemes, and too many
 * attempts 429, as at the login.
 */
function createCallerOf({
  authenticate,
  addressOf,
}: Pick<AdmissionOptions, 'authenticate' | 'addressOf'>): (
  request: Request,
  how: TunnelKind,
) => Promise<Caller | { readonly refusal: Refusal }> {
  return async (request, how) => {
    const { fields } = request;
    if (fields.repeated !== undefined) {
      return { refusal: { code: 'field_invalid', error: 'http_request_error', why: fields.repeated } };
    }
    // RFC 9298 §3 names a resource of an origin, so clients of connect-udp may authenticate as to an origin.
    const credential = fields.proxyAuthorization ?? (how === 'udp' ? fields.authorization : undefined);
    const requestId = request.id === '' ? undefined : request.id;
    const from = { address: addressOf(request), requestId };
    const judged = await authenticate(credential, from);
    if ('problem' in judged) {
      return { refusal: badCredential(judged.problem, judged.allowance?.retryAfterSeconds) };
    }
    if (!('scheme' in judged)) return { refusal: noCredential(fields.authorization !== undefined) };
    return { known: judged, principal: judged.principal };
  };
}

function badCredential(problem: ProblemCode, retryAfterSeconds: number | undefined): Refusal {
  if (problems[problem].status !== 401) {
    const retry = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
    return { code: problem, error: 'http_request_denied', ...retry };
  }
  const code = problem === 'no_token_provided' ? 'proxy_credentials_required' : 'proxy_credentials_invalid';
  return { code, error: 'http_request_denied', challenges: proxyChallengesFor(problem), why: problem };
}

function noCredential(hasAuthorization: boolean): Refusal {
  return {
    code: 'proxy_credentials_required',
    error: 'http_request_denied',
    challenges: proxyChallengesFor('no_token_provided'),
    ...(hasAuthorization
      ? { message: 'proxy credentials go into Proxy-Authorization, not Authorization' }
      : {}),
  };
}

// Limits on the number of tunnels, of all principals and of each, and on the octets that those of one principal carry
// in a day (§8). Counted in this process; a day is in UTC, and an octet counts on the day on which it passes. A refusal
// says when to retry.

type BudgetSettings = Pick<Settings, 'tunnelsMax' | 'tunnelsPerPrincipalMax' | 'tunnelBytesPerDayMax'>;

export type Account = {
  /** Counts octets in either direction. False: the daily limit is reached, and the tunnel must be cut. */
  readonly spend: (bytes: number) => boolean;
};

/** A place in the count of tunnels; `giveBack` releases it once. */
type Place = { readonly account: Account; readonly giveBack: () => void };

type Entry =
  | { readonly ok: true; readonly place: Place }
  | {
      readonly ok: false;
      readonly reason: 'all' | 'principal' | 'bytes';
      readonly retryAfterSeconds: number;
    };

type Budget = {
  readonly enter: (principal: string) => Entry;
  readonly count: () => number;
};

const dayMs = 86_400_000;
/** An estimate: tunnels end at any moment. */
const placeRetrySeconds = 5;

type Ledger = { open: number; day: number; bytes: number };

const ledgersMax = memoryBounds.tunnelLedgers.entries;

export function createBudget(settings: BudgetSettings, clock: () => number): Budget {
  const { tunnelsMax, tunnelsPerPrincipalMax, tunnelBytesPerDayMax } = settings;
  const ledgers = new Map<string, Ledger>();
  let open = 0;
  let today = dayOf(clock());

  /** Forgets the principals of other days without open tunnels, so that only those of one day are kept. */
  function turnDay(): void {
    const day = dayOf(clock());
    if (day === today) return;
    today = day;
    for (const [principal, ledger] of ledgers) if (ledger.open === 0) ledgers.delete(principal);
  }

  function isSpent(ledger: Ledger): boolean {
    return tunnelBytesPerDayMax > 0 && ledger.day === today && ledger.bytes >= tunnelBytesPerDayMax;
  }

  function accountOf(ledger: Ledger): Account {
    if (tunnelBytesPerDayMax === 0) return unlimited;
    return {
      spend(bytes) {
        turnDay();
        if (ledger.day !== today) {
          ledger.day = today;
          ledger.bytes = 0;
        }
        ledger.bytes += bytes;
        return ledger.bytes < tunnelBytesPerDayMax;
      },
    };
  }

  function placeOf(principal: string, ledger: Ledger): Place {
    open += 1;
    ledger.open += 1;
    let isTaken = true;
    return {
      account: accountOf(ledger),
      giveBack() {
        if (!isTaken) return;
        isTaken = false;
        open -= 1;
        ledger.open -= 1;
        if (ledger.open === 0 && (ledger.bytes === 0 || ledger.day !== today)) ledgers.delete(principal);
      },
    };
  }

  return {
    enter(principal) {
      turnDay();
      const ledger = ledgers.get(principal) ?? { open: 0, day: today, bytes: 0 };
      if (isSpent(ledger)) {
        const retryAfterSeconds = Math.ceil(((today + 1) * dayMs - clock()) / 1000);
        return { ok: false, reason: 'bytes', retryAfterSeconds };
      }
      if (ledger.open >= tunnelsPerPrincipalMax) {
        return { ok: false, reason: 'principal', retryAfterSeconds: placeRetrySeconds };
      }
      if (open >= tunnelsMax) return { ok: false, reason: 'all', retryAfterSeconds: placeRetrySeconds };
      if (!ledgers.has(principal)) makeRoomIn(ledgers);
      ledgers.set(principal, ledger);
      return { ok: true, place: placeOf(principal, ledger) };
    },
    count: () => open,
  };
}

/** Forgets the oldest count. A caller with this many principals has as many limits anyway. */
function makeRoomIn(ledgers: Map<string, Ledger>): void {
  for (const [principal, ledger] of ledgers) {
    if (ledgers.size < ledgersMax) return;
    if (ledger.open === 0) ledgers.delete(principal);
  }
}

const unlimited: Account = { spend: () => true };

function dayOf(ms: number): number {
  return Math.floor(ms / dayMs);
}

// The open tunnels of all kinds: reports their opening and closing, cuts them when their credential ends, and at the
// end of a drain. Two modes, *serving* and *draining*; the second is final.

export type Reached = {
  readonly address: string;
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
};

export type OpenTunnel = {
  /** Emits `tunnel-closed` and releases the place. Further calls do nothing. */
  readonly close: (why: TunnelEnd, sentBytes: number, receivedBytes: number) => void;
};

type Opening = {
  readonly known: Known;
  readonly peer: string;
  readonly how: TunnelKind;
  readonly destination: Destination;
  readonly reached: Reached;
  /** Objections of host rules in the mode `report`. */
  readonly reported: readonly string[];
  readonly cut: (why: TunnelEnd) => void;
  readonly giveBack: () => void;
  /** Octets that it has carried, in both directions. */
  readonly octets: () => number;
};

type OpenTunnels = {
  readonly open: (opening: Opening) => OpenTunnel;
  /** Resolves when every place is released, or when the open tunnels were cut at the bound. */
  readonly drain: (boundMs: number) => Promise<void>;
  readonly isDraining: () => boolean;
  readonly look: () => void;
};

/** @param options.count places in use, including those of tunnels that are being opened */
function openTunnels(options: {
  readonly observe: Observe;
  readonly count: () => number;
  readonly connections: Pick<OpenConnections, 'enter'>;
}): OpenTunnels {
  const { observe, count, connections } = options;
  const cuts = new Set<(why: TunnelEnd) => void>();
  const waiting = new Set<() => void>();
  let isDraining = false;
  let isOver = false;

  function open(opening: Opening): OpenTunnel {
    const { known, peer, how, destination, reached, reported, cut, giveBack, octets } = opening;
    const { host, port } = destination;
    const principal = known.principal.id;
    const { address, dnsMs, connectMs } = reached;
    const startedMs = performance.now();
    // A distinct function for each, which is its identity.
    const cutOnce = (why: TunnelEnd): void => {
      if (cuts.has(cutOnce)) cut(why);
    };
    cuts.add(cutOnce);
    if (reported.length > 0) {
      observe({ kind: 'tunnel-reported', principal, how, host, port, why: reported.join('; ') });
    }
    observe({ kind: 'tunnel-opened', peer, principal, how, host, port, address, dnsMs, connectMs });
    const about = (): string => `${how} ${host}:${port}`;
    const leave = connections.enter({ kind: 'tunnel', principal, peer, about, octets });
    const stopListening = known.onEnd(() => cutOnce('revoked'));
    if (isOver) queueMicrotask(() => cutOnce('drained'));
    return {
      close(why, sentBytes, receivedBytes) {
        if (!cuts.delete(cutOnce)) return;
        stopListening();
        leave();
        giveBack();
        const durationMs = performance.now() - startedMs;
        const carried = { address, sentBytes, receivedBytes, durationMs };
        observe({ kind: 'tunnel-closed', principal, how, host, port, ...carried, why });
      },
    };
  }

  return {
    open,
    drain(boundMs) {
      isDraining = true;
      if (count() === 0) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          isOver = true;
          for (const cut of [...cuts]) cut('drained');
          finish();
        }, boundMs);
        const finish = (): void => {
          clearTimeout(timer);
          waiting.delete(finish);
          resolve();
        };
        waiting.add(finish);
      });
    },
    isDraining: () => isDraining,
    look() {
      if (count() === 0) for (const finish of waiting) finish();
    },
  };
}

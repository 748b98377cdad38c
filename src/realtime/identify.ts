/**
 * Who opens a WebSocket (§4.13, §5.1, §5.4). Scripts of any page may open one to any server, and the same-origin policy does not keep them from
 * reading what it says; so Origin is looked at here, for every caller that sends one.
 *
 * - An origin that is neither ours nor allowed by CORS is refused.
 * - The session cookie, which a browser sends by itself, counts only for pages that may send the user's credentials.
 * - A ticket stands for the credential that it was made with. Beside it the cookie does not count, and any other credential is one too many.
 */
import type { Allowance, Request } from '../http/message.ts';
import { parseQueryString } from '../http/syntax/query-string.ts';
import { allowedOrigin, type CorsPolicy } from '../kernel/answer/cors.ts';
import type { CallerAddress } from '../kernel/rate-limit/caller-address.ts';
import type { Authenticate, Identified, Resource } from '../kernel/resource.ts';
import { memoryBounds } from '../memory/bounds.ts';
import type { SealedCredential, Tickets } from './tickets.ts';

export type IdentifyOptions = {
  readonly tickets: Pick<Tickets, 'use'>;
  readonly attempts: Pick<Attempts, 'isTooSoon'>;
  readonly addressOf: CallerAddress;
  readonly cors: CorsPolicy;
  /** True where a page of a site that is neither ours nor trusted with credentials has sent the request. */
  readonly crossSite: (request: Pick<Request, 'fields'>) => boolean;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
};

export const ticketParameter = 'ticket';
export const keyParameter = 'api_key';

const crossSiteRequest: Identified = { problem: 'cross_site_request' };
const repeated: Identified = { problem: 'credentials_repeated' };
const invalid: Identified = { problem: 'invalid_token' };

export function createIdentify(options: IdentifyOptions): NonNullable<Resource['identify']> {
  const { cors, crossSite } = options;
  return (request, query, authenticate) => {
    const { origin } = request.fields;
    const isForeign = crossSite(request);
    if (origin !== undefined && isForeign && allowedOrigin(cors, origin) === undefined) {
      return crossSiteRequest;
    }
    const found = credentialsIn(query);
    if (found.tickets.length > 0) return byTicket(options, request, found, authenticate);
    const identified = authenticate(request, query);
    const judge = (judged: Identified): Identified =>
      isForeign && isByCookie(judged) ? crossSiteRequest : judged;
    return identified instanceof Promise ? identified.then(judge) : judge(identified);
  };
}

/** What a ticket is to stand for: the credential of this request, in the one place that counted. @param query undecoded */
export function credentialOf(
  { fields }: Pick<Request, 'fields'>,
  query: string | undefined,
): SealedCredential {
  const { authorization, xApiKey, cookie } = fields;
  if (authorization !== undefined) return { authorization };
  if (xApiKey !== undefined) return { xApiKey };
  if (query !== undefined && credentialsIn(query).hasKey) return { query };
  return cookie === undefined ? {} : { cookie };
}

type Found = { readonly tickets: readonly string[]; readonly hasKey: boolean };

/** A query string that cannot be read has no ticket in it; what else it means is decided elsewhere. */
function credentialsIn(query: string | undefined): Found {
  const pairs = query === undefined || query === '' ? [] : (parseQueryString(query) ?? []);
  return {
    tickets: pairs.filter(([name]) => name === ticketParameter).map(([, value]) => value),
    hasKey: pairs.some(([name]) => name === keyParameter),
  };
}

function byTicket(
  options: IdentifyOptions,
  request: Request,
  { tickets, hasKey }: Found,
  authenticate: Authenticate,
): Identified | Promise<Identified> {
  const { fields } = request;
  const [ticket = ''] = tickets;
  const isOne = tickets.length === 1 && !hasKey;
  if (!isOne || fields.authorization !== undefined || fields.xApiKey !== undefined) return repeated;
  // Bad tickets count against the address. While it has no attempt left, a good one is refused before it is used up.
  if (options.attempts.isTooSoon(options.addressOf(request), options.clock()))
    return { problem: 'rate_limited' };
  return options.tickets.use(ticket).then((credential) => {
    if (credential === undefined) return invalid;
    return authenticate(bearing(request, credential), credential.query);
  });
}

/** The request as it would have come with the credential itself. */
function bearing(request: Request, { authorization, xApiKey, cookie }: SealedCredential): Request {
  const { method, target, version, rawFields, protocol, peer, id, memory } = request;
  return {
    ...{ method, target, version, rawFields, protocol, peer, id, ...(memory && { memory }) },
    fields: { ...request.fields, authorization, xApiKey, cookie },
    readContent: (bytesMax) => request.readContent(bytesMax),
  };
}

function isByCookie(identified: Identified): boolean {
  return 'scheme' in identified && identified.scheme === 'session-cookie';
}

type Attempts = {
  /** Counts the attempt, unless it comes too soon; undefined: no limit applies. @param nowMs since the epoch */
  admit(caller: string, nowMs: number): Allowance | undefined;
  /** The same without counting it. */
  isTooSoon(caller: string, nowMs: number): boolean;
};

/**
 * Limits attempts to open a WebSocket (§9) by a token bucket for each caller: it holds `burst` attempts and gets one back every `attemptMs`. A caller is a
 * principal, or without one an address, so that users behind one address do not use up each other's attempts. A burst lets several tabs, or a page
 * that is loaded again, connect at once: a browser shows its script no 429, only that the connection closed (1006).
 *
 * Asked after the handshake was found sound, so what is no attempt does not count; a refused attempt does not count either, and Retry-After does not
 * move away from a client that keeps trying. Each process counts for itself.
 *
 * Callers remembered. One that is forgotten has its whole burst again.
 */
export const attemptCallersMax = memoryBounds.realtimeAttempts.entries;

/** @param attemptMs 0 sets no limit */
export function createAttempts(attemptMs: number, burst: number): Attempts {
  if (attemptMs === 0) return { admit: () => undefined, isTooSoon: () => false };
  const policy = `"realtime";q=${burst};w=${Math.ceil((burst * attemptMs) / 1000)}`;
  /** When each bucket is full again; the one used least recently first. */
  const fullAt = new Map<string, number>();

  /** Time until all that was taken from the bucket is back. A clock that stepped back shuts nobody out for longer than that takes. */
  function owedMs(caller: string, nowMs: number): number {
    const at = fullAt.get(caller);
    return at === undefined ? 0 : Math.min(burst * attemptMs, Math.max(0, at - nowMs));
  }

  function forgetOld(nowMs: number): void {
    for (const [caller, at] of fullAt) {
      if (at > nowMs && fullAt.size < attemptCallersMax) return;
      fullAt.delete(caller);
    }
  }

  return {
    isTooSoon: (caller, nowMs) => owedMs(caller, nowMs) > (burst - 1) * attemptMs,
    admit(caller, nowMs) {
      const owed = owedMs(caller, nowMs);
      const exceeded = owed > (burst - 1) * attemptMs;
      const owedAfter = exceeded ? owed : owed + attemptMs;
      if (!exceeded) {
        fullAt.delete(caller);
        forgetOld(nowMs);
        fullAt.set(caller, nowMs + owedAfter);
      }
      const remaining = Math.max(0, Math.floor(burst - owedAfter / attemptMs));
      // Until the next attempt is back.
      const waitMs = owedAfter - (Math.ceil(owedAfter / attemptMs) - 1) * attemptMs;
      const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
      const rate = `"realtime";r=${remaining};t=${retryAfterSeconds}`;
      return { exceeded, policy, rate, remaining: String(remaining), retryAfterSeconds };
    },
  };
}

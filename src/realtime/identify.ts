/**
 * Identifies the caller that opens a WebSocket (§4.13, §5.1, §5.4). A script of any page may open a WebSocket to any
 * server, and the same-origin policy does not keep it from reading messages; so Origin is checked here, for every
 * caller that sends it.
 *
 * - An origin that is neither ours nor allowed by CORS is refused.
 * - The session cookie, which a browser sends by itself, counts only for pages that may send the user's credentials.
 * - A ticket replaces the credential that it was made with. The cookie beside it is ignored, others are refused.
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
  /** True if a page of a site that is neither ours nor trusted with credentials has sent the request. */
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

/**
 * Returns the credential of this request that a ticket is to replace, in the place where it was found.
 * @param query undecoded
 */
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

/** An unreadable query string contains no ticket; its refusal is decided elsewhere. */
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
  // Bad tickets count against the address. While it has no attempt left, a good ticket is refused before it is used up.
  if (options.attempts.isTooSoon(options.addressOf(request), options.clock()))
    return { problem: 'rate_limited' };
  return options.tickets.use(ticket).then((credential) => {
    if (credential === undefined) return invalid;
    return authenticate(bearing(request, credential), credential.query);
  });
}

/** The request as it would be with the credential itself. */
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
  /** Counts the attempt unless it exceeds the limit; undefined: no limit applies. @param nowMs since the epoch */
  admit(caller: string, nowMs: number): Allowance | undefined;
  /** Checks the limit without counting. */
  isTooSoon(caller: string, nowMs: number): boolean;
};

/** Callers remembered; a forgotten one has its whole burst again. */
export const attemptCallersMax = memoryBounds.realtimeAttempts.entries;

/**
 * Limits attempts to open a WebSocket (§9) by a token bucket for each caller: it holds `burst` attempts and regains one
 * every `attemptMs`. A caller is a principal or, without one, an address, so that users behind one address do not use
 * up each other's attempts. A burst lets several tabs, or a reloaded page, connect at once: a browser does not show a
 * 429 to its script, only that the connection closed (1006).
 *
 * The kernel checks it after the handshake, so an invalid handshake does not count. A refused attempt does not count
 * either, so Retry-After does not grow for a client that keeps trying. Each process counts for itself.
 * @param attemptMs 0 sets no limit
 */
export function createAttempts(attemptMs: number, burst: number): Attempts {
  if (attemptMs === 0) return { admit: () => undefined, isTooSoon: () => false };
  const policy = `"realtime";q=${burst};w=${Math.ceil((burst * attemptMs) / 1000)}`;
  /** Time at which each bucket is full again; the least recently used first. */
  const fullAt = new Map<string, number>();

  /** Time until the bucket is full. If the clock steps back, a caller waits for at most a whole burst. */
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
      // Until one more attempt is available.
      const waitMs = owedAfter - (Math.ceil(owedAfter / attemptMs) - 1) * attemptMs;
      const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
      const rate = `"realtime";r=${remaining};t=${retryAfterSeconds}`;
      return { exceeded, policy, rate, remaining: String(remaining), retryAfterSeconds };
    },
  };
}

/**
 * Identifies the caller that opens a WebSocket (§4.13, §5.1, §5.4). A script of any page may open a WebSocket to any
 * server, and the same-origin policy does not keep it from reading messages; so Origin is checked here, for every
 * caller that sends it.
 *
 * - An origin that is neither ours nor allowed by CORS is refused.
 * - The session cookie, which a browser sends by itself, counts only for pages that may send the user's credentials.
 * - A ticket replaces the credential that it was made with. The cookie beside it is ignored, others are refused.
 */

import { hash } from 'node:crypto';
import type { Allowance, Request } from '../http/message.ts';
import { parseQueryString } from '../http/syntax/query-string.ts';
import { allowedOrigin, type CorsPolicy } from '../kernel/answer/cors.ts';
import type { CallerAddress } from '../kernel/rate-limit/caller-address.ts';
import type { Authenticate, Identified, Resource } from '../kernel/resource.ts';
import { openText, type Seal, sealText } from '../kernel/sealed-text.ts';
import { memoryBounds } from '../memory/bounds.ts';
import type { Services } from '../store/capabilities.ts';
import type { Store } from '../store/store.ts';
import { keptRow } from '../store/store.ts';

/** How callers are judged. */
type Judging = {
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

export function createIdentify(
  judging: Judging,
  tickets: Pick<Tickets, 'use'>,
  attempts: Pick<Attempts, 'isTooSoon'>,
): NonNullable<Resource['identify']> {
  const { cors, crossSite, addressOf, clock } = judging;
  return (request, query, authenticate) => {
    const { origin } = request.fields;
    const isForeign = crossSite(request);
    if (origin !== undefined && isForeign && allowedOrigin(cors, origin) === undefined) {
      return crossSiteRequest;
    }
    const found = credentialsIn(query);
    if (found.tickets.length > 0) {
      // Bad tickets count against the address. While it has no attempt left, a good ticket is refused before it is used up.
      const isTooSoon = () => attempts.isTooSoon(addressOf(request), clock());
      return byTicket({ tickets, isTooSoon }, request, found, authenticate);
    }
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
  {
    tickets: known,
    isTooSoon,
  }: { readonly tickets: Pick<Tickets, 'use'>; readonly isTooSoon: () => boolean },
  request: Request,
  { tickets, hasKey }: Found,
  authenticate: Authenticate,
): Identified | Promise<Identified> {
  const { fields } = request;
  const [ticket = ''] = tickets;
  const isOne = tickets.length === 1 && !hasKey;
  if (!isOne || fields.authorization !== undefined || fields.xApiKey !== undefined) return repeated;
  if (isTooSoon()) return { problem: 'rate_limited' };
  return known.use(ticket).then((credential) => {
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

// Tickets open a WebSocket from a browser, which cannot send Authorization with it. A ticket works once, for a short time, and replaces
// the credential that it was made with. The credential is stored sealed by a key that only the ticket yields, and is authenticated anew
// when the ticket is used, so revocation and limits still apply. A reader of the store learns no credential; a later reader of a URL has
// a useless ticket.

/** Rows by the base64url SHA-256 of the ticket. No events. */
export const realtimeTicketsTable = 'realtime_tickets';

/** A credential, in exactly one of the places where a request carries it. */
export type SealedCredential = {
  readonly authorization?: string;
  readonly xApiKey?: string;
  readonly cookie?: string;
  /** The query component that contains it, undecoded. */
  readonly query?: string;
};

export type Tickets = {
  /** @returns a ticket that is valid for `seconds` @throws StoreUnavailable */
  make(credential: SealedCredential): Promise<string>;
  /**
   * Returns the credential and uses up the ticket; undefined if it is unknown, expired or used.
   * @throws StoreUnavailable
   */
  use(ticket: string): Promise<SealedCredential | undefined>;
};

type TicketRow = { readonly sealed: string; readonly expiresAt: number };

const ticketBytes = 32;
/** `ticketBytes` in base64url. */
const ticketPattern = /^[A-Za-z0-9_-]{43}$/;

export function createTickets(
  {
    store,
    clock,
    random,
  }: Pick<Services, 'clock' | 'random'> & { readonly store: Pick<Store, 'read' | 'commit'> },
  seconds: number,
): Tickets {
  return {
    async make(credential) {
      const ticket = random(ticketBytes).toString('base64url');
      const id = idOf(ticket);
      const now = clock();
      const row: TicketRow = {
        sealed: sealText(JSON.stringify(credential), sealOf(ticket, id), random),
        expiresAt: now + seconds * 1000,
      };
      const next = keptRow(JSON.stringify(row), null, now, now);
      const change = { table: realtimeTicketsTable, id, expect: { absent: true }, next } as const;
      const { outcome } = await store.commit({ changes: [change], events: [] });
      if (outcome !== 'committed')
        throw new Error('a new ticket of 256 random bits exists already: the random source is broken');
      return ticket;
    },
    async use(ticket) {
      if (!ticketPattern.test(ticket)) return undefined;
      const id = idOf(ticket);
      const row = await store.read(realtimeTicketsTable, id);
      if (row === undefined) return undefined;
      const { sealed, expiresAt } = JSON.parse(row.doc) as TicketRow;
      if (clock() >= expiresAt) return undefined;
      // The request that deletes the row uses the ticket: one of several succeeds, in any process.
      const change = { table: realtimeTicketsTable, id, expect: { rev: row.rev }, next: null };
      const { outcome } = await store.commit({ changes: [change], events: [] });
      const opened = outcome === 'committed' ? openText(sealed, sealOf(ticket, id)) : undefined;
      return opened === undefined ? undefined : (JSON.parse(opened) as SealedCredential);
    },
  };
}

function idOf(ticket: string): string {
  return hash('sha256', ticket, 'base64url');
}

function sealOf(ticket: string, id: string): Seal {
  return { secret: ticket, id, purpose: 'comity realtime ticket' };
}

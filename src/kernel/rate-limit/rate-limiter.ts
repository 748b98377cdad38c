/**
 * Rate limits (§7, RFC 6585 §4): a number of reads and of writes a minute, by principal, or by address for requests
 * without valid credentials. The administrator key is not counted, so that an operator is never locked out. A request
 * never waits for the database: it is judged by what this process knows, and learns in the background what
 * other processes admitted. Responses carry `RateLimit` and `RateLimit-Policy`
 * (draft-ietf-httpapi-ratelimit-headers-10) and `X-RateLimit-Remaining`.
 */
import { hash } from 'node:crypto';
import type { Settings } from '../../config/settings.ts';
import type { Allowance, Request } from '../../http/message.ts';
import { operatorId, type Principal } from '../../model/principal.ts';
import { type Store, StoreUnavailable } from '../../store/store.ts';
import { createCallerAddress, proxiesOf } from './caller-address.ts';

export type RateLimiter = {
  /** Counts the request; undefined if no limit applies. */
  admit(
    request: Pick<Request, 'method' | 'fields' | 'peer'>,
    principal: Principal,
    nowMs: number,
  ): Allowance | undefined;
  /** Counts octets of a file that the request brought or got (`rateLimitFileKibibytes`): they are known only afterwards, and limit the next requests. */
  chargeOctets(
    request: Pick<Request, 'method' | 'fields' | 'peer'>,
    principal: Principal,
    octets: number,
    nowMs: number,
  ): void;
  /** Returns the principal's id or the counted address, for queues that are fair by party. */
  partyOf(request: Pick<Request, 'fields' | 'peer'>, principal: Principal): string;
  close(): Promise<void>;
};

/** Reads and writes a minute (0 sets no limit), the exchange with other processes, and the bound on callers. */
export type RateLimits = Pick<
  Settings,
  | 'rateLimitReads'
  | 'rateLimitWrites'
  | 'rateLimitFileKibibytes'
  | 'rateLimitSyncMs'
  | 'rateLimitKeysMax'
  | 'behindProxy'
  | 'proxiesTrusted'
>;

/** Every limit: a request counts at the first that counts its method. */
export const rateLimits = [
  {
    policy: 'reads',
    setting: 'rateLimitReads',
    counts: (method: string) => method === 'GET' || method === 'HEAD' || method === 'QUERY',
  },
  { policy: 'writes', setting: 'rateLimitWrites', counts: () => true },
] as const;

type Meters = { readonly principals: Meter; readonly addresses: Meter } | undefined;

/** Longer ids, which tokens of trusted issuers may have, are counted by their digest. */
const idCharactersMax = 64;

function counted(id: string): string {
  return id.length <= idCharactersMax ? id : hash('sha256', id, 'base64url');
}

/** @param onFailure receives a failed exchange with other processes that is not a passing outage, and the next one after a success */
export function createRateLimiter(
  limits: RateLimits,
  store: Pick<Store, 'shared' | 'tally'>,
  onFailure: (error: unknown) => void,
): RateLimiter {
  const reconciler = store.shared ? createReconciler(store, limits.rateLimitSyncMs, onFailure) : undefined;
  const metersOf = (policy: Limit['policy'], perMinute: number): Meters => {
    if (perMinute === 0) return undefined;
    const meterOf = (callers: Limit['callers']) =>
      new Meter({ policy, callers, perMinute }, limits.rateLimitKeysMax, reconciler?.add);
    return { principals: meterOf('principal'), addresses: meterOf('address') };
  };
  const all = rateLimits.map(({ policy, setting, counts }) => ({
    counts,
    meters: metersOf(policy, limits[setting]),
  }));
  const addressOf = createCallerAddress(proxiesOf(limits));
  const meterOf = (request: Pick<Request, 'method' | 'fields' | 'peer'>, principal: Principal) => {
    const meters = all.find(({ counts }) => counts(request.method))?.meters;
    if (meters === undefined) return undefined;
    if (principal.kind === 'anonymous') return { meter: meters.addresses, caller: addressOf(request) };
    if (principal.id === operatorId) return undefined;
    return { meter: meters.principals, caller: counted(principal.id) };
  };

  return {
    admit(request, principal, nowMs) {
      const found = meterOf(request, principal);
      return found?.meter.admit(found.caller, nowMs);
    },
    chargeOctets(request, principal, octets, nowMs) {
      const { rateLimitFileKibibytes } = limits;
      const requests =
        rateLimitFileKibibytes === 0 ? 0 : Math.floor(octets / (rateLimitFileKibibytes * 1024));
      const found = requests === 0 ? undefined : meterOf(request, principal);
      found?.meter.charge(found.caller, requests, nowMs);
    },
    partyOf: (request, principal) => (principal.kind === 'anonymous' ? addressOf(request) : principal.id),
    async close() {
      await reconciler?.close();
    },
  };
}

// Exchanges counters with other processes: one exchange an interval, over the counters that changed; no request waits
// for it.
//
// Two modes: `resting` (nothing is queued; no timer runs) and `gathering` (a timer or an exchange is pending; counters
// queued meanwhile start the next). So exchanges never overlap, and a slow database receives fewer.
//
// A failed exchange may have been committed, so its counts are not sent again: other processes may count too little,
// but no caller is charged twice, and this process keeps its own count.

type Reconciler = {
  add(counter: Counter): void;
  /** Starts no further exchange; resolves when the current one has ended. */
  close(): Promise<void>;
};

/** Counters of one statement: 250 take about 2 ms, for which others on the connection may have to wait. */
const countersPerTallyMax = 250;

function createReconciler(
  store: Pick<Store, 'tally'>,
  intervalMs: number,
  onFailure: (error: unknown) => void,
): Reconciler {
  let waiting: Counter[] = [];
  let timer: NodeJS.Timeout | undefined;
  let underWay: Promise<void> | undefined;
  let closed = false;
  let reported = false;

  function settle(error: unknown): void {
    underWay = undefined;
    if (error !== undefined && !(error instanceof StoreUnavailable) && !reported) onFailure(error);
    reported = error !== undefined && !(error instanceof StoreUnavailable);
    if (waiting.length > 0) gather();
  }

  function gather(): void {
    if (closed || timer !== undefined || underWay !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      const counters = waiting;
      waiting = [];
      underWay = exchange(counters, store).then(settle);
    }, intervalMs);
    // Counts alone do not keep the process alive.
    timer.unref();
  }

  return {
    add(counter) {
      counter.isQueued = true;
      waiting.push(counter);
      gather();
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      await underWay;
    },
  };
}

/** Resolves with the failure, if any; the rest is then skipped, because it would wait for the same database. */
async function exchange(counters: readonly Counter[], store: Pick<Store, 'tally'>): Promise<unknown> {
  let failure: unknown;
  for (let at = 0; at < counters.length; at += countersPerTallyMax) {
    const part = counters.slice(at, at + countersPerTallyMax);
    for (const counter of part) counter.isQueued = false;
    if (failure !== undefined) continue;
    try {
      await exchangePart(part, store);
    } catch (error) {
      failure = error;
    }
  }
  return failure;
}

async function exchangePart(counters: readonly Counter[], store: Pick<Store, 'tally'>): Promise<void> {
  const tallies = counters.map((counter) => {
    const add = counter.unsent;
    counter.unsent = 0;
    // A window is read until the next one is over.
    return { key: counter.key, add, expiresAt: (counter.window + 2) * windowMs };
  });
  const totals = await store.tally(tallies);
  for (const [index, counter] of counters.entries()) {
    const total = (totals[index] ?? 0) + counter.unsent;
    // The database may have dropped a counter that this process still has.
    if (total > counter.admitted) counter.admitted = total;
  }
}

// One rate limit for callers of one kind: admits or refuses a request, and returns the allowance for the response.
//
// Counters live in two maps, for this window and the one before, and disappear with their map. In a full map a caller
// below half of its limit is forgotten to make room: a sender with that many addresses has as many limits anyway. If a
// few looks find no such caller, new callers share one counter (`crowd`).
//
// A refused request is not counted, so that Retry-After holds for a client that keeps sending.
//

type Share = (counter: Counter) => void;

/** Requests of one caller admitted in one window, by this process and, as far as it knows, by all. */
class Counter {
  /** The limit, and whether the caller is a principal or an address. */
  readonly meter: string;
  readonly caller: string;
  /** Minutes since the epoch. */
  readonly window: number;
  admitted = 0;
  /** Admitted requests that other processes have not been sent yet. */
  unsent = 0;
  isQueued = false;
  before: Counter | undefined;

  constructor(meter: string, caller: string, window: number) {
    this.meter = meter;
    this.caller = caller;
    this.window = window;
  }

  /** The key that all processes use. */
  get key(): string {
    return `rate ${this.meter} ${this.window} ${this.caller}`;
  }
}

/**
 * The length of a fixed window. A sliding window is made of two fixed ones: requests admitted in the previous minute
 * count with the share of it that the last sixty seconds still cover, as if they were evenly spread
 * (docs/decisions/0019). Whole numbers, so that a refusal and its Retry-After never disagree.
 */
export const windowMs = 60_000;

/** Returns how many of the `before` requests of the previous window count when `elapsedMs` of this one have passed. */
export function stillCounted(before: number, elapsedMs: number): number {
  return Math.floor((before * (windowMs - elapsedMs - 1)) / windowMs);
}

/**
 * Returns the milliseconds from `elapsedMs` until one more request would be admitted; 0: now. @param limit at least 1
 */
export function waitMs(limit: number, admitted: number, before: number, elapsedMs: number): number {
  if (admitted < limit) return Math.max(0, fadedAt(before, limit - 1 - admitted) - elapsedMs);
  return windowMs - elapsedMs + fadedAt(admitted, limit - 1);
}

/** Returns the first millisecond of a window at which at most `room` of `before` still count. */
function fadedAt(before: number, room: number): number {
  return before <= room ? 0 : Math.floor((windowMs * (before - room - 1)) / before);
}

type Limit = {
  /** Its name in `RateLimit-Policy`. */
  readonly policy: (typeof rateLimits)[number]['policy'];
  readonly callers: 'principal' | 'address';
  /** At least 1. */
  readonly perMinute: number;
};

/** Counters examined to find one that may be forgotten. */
const looksMax = 8;

export class Meter {
  readonly #name: string;
  readonly #limit: number;
  readonly #countersMax: number;
  readonly #share: Share | undefined;
  readonly #policy: string;
  readonly #ratePrefix: string;
  #window = 0;
  #current = new Map<string, Counter>();
  #previous = new Map<string, Counter>();
  #crowd: Counter;
  #hand: MapIterator<Counter>;

  /** @param share undefined if no other process counts */
  constructor({ policy, callers, perMinute }: Limit, countersMax: number, share: Share | undefined) {
    this.#name = `${policy} ${callers}`;
    this.#limit = perMinute;
    this.#countersMax = countersMax;
    this.#share = share;
    this.#policy = `"${policy}";q=${perMinute};w=${windowMs / 1000}`;
    this.#ratePrefix = `"${policy}";r=`;
    this.#crowd = new Counter(this.#name, '', 0);
    this.#hand = this.#current.values();
  }

  get counters(): number {
    return this.#current.size + this.#previous.size;
  }

  /** @param nowMs since the epoch */
  admit(caller: string, nowMs: number): Allowance {
    const window = Math.floor(nowMs / windowMs);
    if (window !== this.#window) this.#turnTo(window);
    const counter = this.#current.get(caller) ?? this.#open(caller);
    // A clock that stepped back a little stays in the current window.
    const elapsedMs = window === this.#window ? nowMs - window * windowMs : 0;
    const before = counter.before?.admitted ?? 0;
    const left = this.#limit - counter.admitted - stillCounted(before, elapsedMs);
    if (left < 1) return this.#allowance(counter, true, 0, elapsedMs);
    this.#count(counter, 1);
    return this.#allowance(counter, false, left - 1, elapsedMs);
  }

  /** Counts requests that were not asked for one by one; at most as many as the limit, so that a caller waits for two windows at most. */
  charge(caller: string, requests: number, nowMs: number): void {
    const window = Math.floor(nowMs / windowMs);
    if (window !== this.#window) this.#turnTo(window);
    const counter = this.#current.get(caller) ?? this.#open(caller);
    this.#count(counter, Math.min(requests, Math.max(0, this.#limit - counter.admitted)));
  }

  #count(counter: Counter, requests: number): void {
    counter.admitted += requests;
    if (this.#share === undefined || counter === this.#crowd) return;
    counter.unsent += requests;
    if (!counter.isQueued) this.#share(counter);
  }

  #allowance(counter: Counter, exceeded: boolean, left: number, elapsedMs: number): Allowance {
    const resetMs =
      left > 0
        ? windowMs - elapsedMs
        : waitMs(this.#limit, counter.admitted, counter.before?.admitted ?? 0, elapsedMs);
    const seconds = Math.max(1, Math.ceil(resetMs / 1000));
    return {
      exceeded,
      policy: this.#policy,
      rate: `${this.#ratePrefix}${left};t=${seconds}`,
      remaining: `${left}`,
      retryAfterSeconds: seconds,
    };
  }

  #turnTo(window: number): void {
    if (window === this.#window - 1) return;
    const next = window === this.#window + 1;
    this.#previous = next ? this.#current : new Map();
    this.#current = new Map();
    this.#hand = this.#current.values();
    const crowd = new Counter(this.#name, '', window);
    if (next) crowd.before = this.#crowd;
    this.#crowd.before = undefined;
    this.#crowd = crowd;
    this.#window = window;
  }

  #open(caller: string): Counter {
    if (this.#current.size >= this.#countersMax && !this.#makeRoom()) return this.#crowd;
    const counter = new Counter(this.#name, caller, this.#window);
    const before = this.#previous.get(caller);
    if (before !== undefined) before.before = undefined;
    counter.before = before;
    if (this.#share !== undefined) {
      counter.before ??= new Counter(this.#name, caller, this.#window - 1);
      // Read once: other processes may have admitted more since the last exchange.
      if (!counter.before.isQueued) this.#share(counter.before);
    }
    this.#current.set(caller, counter);
    return counter;
  }

  #makeRoom(): boolean {
    for (let looks = 0; looks < looksMax; looks += 1) {
      let counter = this.#hand.next().value;
      if (counter === undefined) {
        this.#hand = this.#current.values();
        counter = this.#hand.next().value;
      }
      if (counter === undefined) return false;
      if (counter.admitted * 2 < this.#limit) return this.#current.delete(counter.caller);
    }
    return false;
  }
}

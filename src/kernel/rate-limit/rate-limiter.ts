/**
 * Rate limits (§7, RFC 6585 §4): a number of reads and of writes a minute, by principal, or by address for requests
 * without valid credentials. The administrator key is not counted, so that an operator is never locked out. A request
 * never waits for the database: it is judged by what this process knows, and learns in the background what
 * other processes admitted. Responses carry `RateLimit` and `RateLimit-Policy`
 * (draft-ietf-httpapi-ratelimit-headers-10) and `X-RateLimit-Remaining`.
 */

import { hash } from 'node:crypto';
import type { Allowance, Request } from '../../http/message.ts';
import { operatorId, type Principal } from '../../model/principal.ts';
import { type Store, StoreUnavailable } from '../../store/store.ts';
import { createCallerAddress } from './caller-address.ts';
import { type Counter, Meter, type MeterOptions, windowMs } from './meter.ts';

export type RateLimiter = {
  /** Counts the request; undefined if no limit applies. */
  admit(
    request: Pick<Request, 'method' | 'fields' | 'peer'>,
    principal: Principal,
    nowMs: number,
  ): Allowance | undefined;
  /** Returns the principal's id or the counted address, for queues that are fair by party. */
  partyOf(request: Pick<Request, 'fields' | 'peer'>, principal: Principal): string;
  close(): Promise<void>;
};

export type RateLimitOptions = {
  readonly store: Pick<Store, 'shared' | 'tally'>;
  /** Requests a minute; 0 sets no limit. */
  readonly rateLimitReads: number;
  readonly rateLimitWrites: number;
  readonly rateLimitSyncMs: number;
  readonly rateLimitKeysMax: number;
  readonly behindProxy: boolean;
  /** Receives a failed exchange with other processes that is not a passing outage of the store. */
  readonly onFailure: (error: unknown) => void;
};

type Meters = { readonly principals: Meter; readonly addresses: Meter } | undefined;

/** Longer ids, which tokens of trusted issuers may have, are counted by their digest. */
const idCharactersMax = 64;

function counted(id: string): string {
  return id.length <= idCharactersMax ? id : hash('sha256', id, 'base64url');
}

export function createRateLimiter(options: RateLimitOptions): RateLimiter {
  const { store, rateLimitSyncMs, rateLimitKeysMax, onFailure } = options;
  const reconciler = store.shared
    ? createReconciler({
        tally: (tallies) => store.tally(tallies),
        intervalMs: rateLimitSyncMs,
        onFailure,
      })
    : undefined;
  const metersOf = (policy: MeterOptions['policy'], limit: number): Meters => {
    if (limit === 0) return undefined;
    const own = { policy, limit, countersMax: rateLimitKeysMax, share: reconciler?.add };
    return {
      principals: new Meter({ ...own, callers: 'principal' }),
      addresses: new Meter({ ...own, callers: 'address' }),
    };
  };
  const reads = metersOf('reads', options.rateLimitReads);
  const writes = metersOf('writes', options.rateLimitWrites);
  const addressOf = createCallerAddress(options.behindProxy);

  return {
    admit(request, principal, nowMs) {
      const { method } = request;
      const meters = method === 'GET' || method === 'HEAD' || method === 'QUERY' ? reads : writes;
      if (meters === undefined) return undefined;
      if (principal.kind === 'anonymous') return meters.addresses.admit(addressOf(request), nowMs);
      if (principal.id === operatorId) return undefined;
      return meters.principals.admit(counted(principal.id), nowMs);
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

type ReconcileOptions = {
  readonly tally: Store['tally'];
  readonly intervalMs: number;
  /** Receives a failure that is not a passing outage, and the next one only after an exchange succeeded. */
  readonly onFailure: (error: unknown) => void;
};

type Reconciler = {
  add(counter: Counter): void;
  /** Starts no further exchange; resolves when the current one has ended. */
  close(): Promise<void>;
};

/** Counters of one statement: 250 take about 2 ms, for which others on the connection may have to wait. */
const countersPerTallyMax = 250;

function createReconciler({ tally, intervalMs, onFailure }: ReconcileOptions): Reconciler {
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
      underWay = exchange(counters, tally).then(settle);
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
async function exchange(counters: readonly Counter[], tally: Store['tally']): Promise<unknown> {
  let failure: unknown;
  for (let at = 0; at < counters.length; at += countersPerTallyMax) {
    const part = counters.slice(at, at + countersPerTallyMax);
    for (const counter of part) counter.isQueued = false;
    if (failure !== undefined) continue;
    try {
      await exchangePart(part, tally);
    } catch (error) {
      failure = error;
    }
  }
  return failure;
}

async function exchangePart(counters: readonly Counter[], tally: Store['tally']): Promise<void> {
  const tallies = counters.map((counter) => {
    const add = counter.unsent;
    counter.unsent = 0;
    // A window is read until the next one is over.
    return { key: counter.key, add, expiresAt: (counter.window + 2) * windowMs };
  });
  const totals = await tally(tallies);
  for (const [index, counter] of counters.entries()) {
    const total = (totals[index] ?? 0) + counter.unsent;
    // The database may have dropped a counter that this process still has.
    if (total > counter.admitted) counter.admitted = total;
  }
}

/**
 * Rate limits (§7, RFC 6585 §4): a number of reads and of writes a minute, by principal, or by address for requests
 * without valid credentials. The administrator key is not counted, so that an operator is never locked out. A request
 * never waits for the database: it is judged by what this process knows, and reconcile.ts learns in the background what
 * other processes admitted. Responses carry `RateLimit` and `RateLimit-Policy`
 * (draft-ietf-httpapi-ratelimit-headers-10) and `X-RateLimit-Remaining`.
 */

import { hash } from 'node:crypto';
import type { Allowance, Request } from '../../http/message.ts';
import { operatorId, type Principal } from '../../model/principal.ts';
import type { Store } from '../../store/store.ts';
import { createCallerAddress } from './caller-address.ts';
import { Meter, type MeterOptions } from './meter.ts';
import { createReconciler } from './reconcile.ts';

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

/**
 * How often a caller may ask (§7, RFC 6585 §4): so many reads and so many writes a minute, by principal, or by address where
 * nobody was authenticated, bad credentials included. The administrator key is not counted: an operator is never locked out.
 *
 * A request is judged by what this process knows and never waits for the database; where others share the store, what
 * they admitted is learned in the background (reconcile.ts). Answers carry `RateLimit` and `RateLimit-Policy`
 * (draft-ietf-httpapi-ratelimit-headers-10) and `X-RateLimit-Remaining`.
 */

import { hash } from 'node:crypto';
import type { Allowance } from '../../http/allowance.ts';
import type { Request } from '../../http/message.ts';
import { operatorId, type Principal } from '../../model/principal.ts';
import type { Store } from '../../store/store.ts';
import { createCallerAddress } from './caller-address.ts';
import { Meter, type MeterOptions } from './meter.ts';
import { createReconciler } from './reconcile.ts';

export type RateLimiter = {
  /** Counts the request; undefined: no limit applies to it. */
  admit(
    request: Pick<Request, 'method' | 'fields' | 'peer'>,
    principal: Principal,
    nowMs: number,
  ): Allowance | undefined;
  /** Whom the request is for, where work is shared out fairly: the principal, or else the address that it is counted by. */
  partyOf(request: Pick<Request, 'fields' | 'peer'>, principal: Principal): string;
  /** Ends the exchange with other processes. */
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
  /** Told when counts could not be shared for a reason that will not pass by itself. */
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

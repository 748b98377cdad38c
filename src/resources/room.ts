/**
 * What the walk needs from outside, wired by compose.ts: no part of it is reached in any other way.
 */

import type { ProblemCode } from '../http/problem-registry.ts';
import type { MaybePromise } from '../store/store.ts';
import type { CorsPolicy } from './answer/cors.ts';
import type { Idempotency } from './idempotency.ts';
import type { MessageLimits } from './message-facts.ts';
import type { Operations } from './operations/operations.ts';
import type { RateLimiter } from './rate-limit/rate-limiter.ts';
import type { Authenticate } from './resource.ts';
import type { Router } from './router.ts';

export type WalkLimits = MessageLimits & {
  /** How often a change that lost a race is computed again before 503. */
  readonly commitRetriesMax: number;
  /** Representations shorter than this are sent as they are. */
  readonly compressionBytesMin: number;
};

export type Room = {
  readonly router: Router;
  readonly limits: WalkLimits;
  readonly clock: () => number;
  readonly authenticate: Authenticate;
  readonly rates: RateLimiter;
  readonly decodeContent: (
    bytes: Uint8Array,
    codings: readonly string[],
  ) => MaybePromise<{ ok: true; bytes: Uint8Array } | { ok: false; code: ProblemCode }>;
  readonly idempotency: Idempotency;
  readonly operations: Operations;
  readonly cors: CorsPolicy;
  readonly challengesFor: (problem: ProblemCode) => string;
  /** Adds `Comity-Trace` to every answer. */
  readonly development: boolean;
  readonly formatDate: (ms: number) => string;
};

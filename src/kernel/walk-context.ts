/** The dependencies of the walk, which compose.ts provides. The walk has no others. */

import type { End } from '../http/conduct/decide.ts';
import type { Request, Response } from '../http/message.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { LoopWatch } from '../observe/loop-watch.ts';
import type { ChangeLines, MaybePromise } from '../store/store.ts';
import type { CorsPolicy } from './answer/cors.ts';
import type { Ended } from './answer/ended.ts';
import type { Idempotency } from './idempotency.ts';
import type { MessageLimits } from './message-facts.ts';
import type { Operations } from './operations/operations.ts';
import type { RateLimiter } from './rate-limit/rate-limiter.ts';
import type { Authenticate } from './resource.ts';
import type { Router } from './router.ts';

export type WalkLimits = MessageLimits & {
  /** Shorter representations are not compressed. */
  readonly compressionBytesMin: number;
};

export type WalkContext = {
  readonly router: Router;
  readonly lines: Pick<ChangeLines, 'isBusy' | 'turn'>;
  readonly limits: WalkLimits;
  readonly clock: () => number;
  readonly authenticate: Authenticate;
  readonly rates: RateLimiter;
  readonly decodeContent: (
    bytes: Uint8Array,
    codings: readonly string[],
    memory?: Request['memory'],
  ) => MaybePromise<{ ok: true; bytes: Uint8Array } | { ok: false; code: ProblemCode }>;
  readonly idempotency: Idempotency;
  readonly operations: Operations;
  readonly cors: CorsPolicy;
  readonly challengesFor: (problem: ProblemCode) => string;
  /** Adds `Comity-Trace` to every response. */
  readonly development: boolean;
  readonly formatDate: (ms: number) => string;
  /** Keeps answers for equal requests; absent: every request is walked. */
  readonly answers?: { offer(end: End, ended: Ended, response: Response): void };
  /** Times the synchronous parts of each walk. */
  readonly loop: Pick<LoopWatch, 'begin' | 'end'>;
};

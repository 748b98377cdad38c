/** The handler of all requests: the resources behind one router, and one walk for each request (§4). */
import type { Settings } from '../config/settings.ts';
import type { Handler, Request, RequestMemory, Response } from '../http/message.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import { createHttpDateCache } from '../http/syntax/http-date.ts';
import { memoryBounds } from '../memory/bounds.ts';
import type { ProgramMemory } from '../memory/program-memory.ts';
import type { Used } from '../model/actor.ts';
import type { Principal } from '../model/principal.ts';
import type { LoopWatch } from '../observe/loop-watch.ts';
import type { Services } from '../store/capabilities.ts';
import type { MaybePromise } from '../store/store.ts';
import type { CorsPolicy } from './answer/cors.ts';
import { decodeContent } from './content/decode-content.ts';
import { createIdempotency, type Sealing } from './idempotency.ts';
import { createRepeating, KeptAnswers } from './kept-answers.ts';
import { patternOf } from './message-facts.ts';
import { createOperations, type Operations } from './operations/operations.ts';
import { principalOf, type StoredRequest } from './operations/stored-request.ts';
import type { RateLimiter } from './rate-limit/rate-limiter.ts';
import type { Authenticate, Resource } from './resource.ts';
import { createRouter } from './router.ts';
import { Walk } from './walk.ts';
import type { WalkContext } from './walk-context.ts';
import type { Before, Carried } from './walk-start.ts';

export type HandlerOptions = Services & {
  readonly settings: Settings;
  /** `/api/v1` */
  readonly base: string;
  readonly resources: readonly Resource[];
  readonly authenticate: Authenticate;
  /** The present principal of a stored request. */
  readonly principalNow: (principal: NonNullable<StoredRequest['principal']>) => MaybePromise<Carried>;
  readonly secretOf: Sealing['secretOf'];
  readonly challengesFor: (problem: ProblemCode) => string;
  /** From 0 to 31. */
  readonly randomDigit: () => number;
  readonly cors: CorsPolicy;
  readonly rates: RateLimiter;
  readonly loop: LoopWatch;
  /** Absent: what stored requests make is not counted. */
  readonly memory?: Pick<ProgramMemory, 'made' | 'budget'>;
};

/** The memory of a stored request, which waits for as long as others make much. @param program undefined: nothing is counted */
function roomIn(program: HandlerOptions['memory']): {
  readonly memory: RequestMemory;
  readonly leave: () => void;
} {
  const made = program?.made;
  const lease = program?.budget.lease('background', { name: 'operations', isReserved: false });
  let held = 0;
  return {
    memory: {
      ofPrincipal: () => undefined,
      hold: (octets) => lease?.growAlone(octets) !== false,
      giveBack: () => undefined,
      madeMax: program?.budget.bytesMax ?? Number.POSITIVE_INFINITY,
      roomToProcess: () => undefined,
      nextTurn: () => undefined,
      makeRoom(octets) {
        if (octets === 0 || held > 0) return undefined;
        held = octets;
        return made?.enter(octets);
      },
    },
    leave() {
      if (held > 0) made?.leave(held);
      lease?.release();
    },
  };
}

/** The credential of a stored request; undefined if it was kept by a version that did not note it. */
function usedBy(principal: StoredRequest['principal']): Used | undefined {
  const { scheme, key = null } = principal ?? {};
  return scheme === undefined ? undefined : { scheme, key };
}

/** @throws {Error} if two resources have the same pattern */
export function createHandler(options: HandlerOptions): {
  readonly handler: Handler;
  /** Handles a request of the program that embeds this one, on behalf of a principal: no limit counts it. */
  readonly handleAs: (request: Request, principal: Principal) => MaybePromise<Response>;
  readonly operations: Operations;
  /** The pattern of the resource, for the log of a request whose walk failed. */
  readonly routeOf: (request: Request) => string | undefined;
  /** Targets of the resources that serve all callers in the reserve. */
  readonly probes: ReadonlySet<string>;
} {
  const { settings, store, clock, newId, random, observe, randomDigit } = options;
  const operations = createOperations(
    { ...{ store, newId, clock, observe }, path: `${options.base}/operations`, random: randomDigit },
    async (request, stored, companions, operation) => {
      const { principal } = stored;
      const identify = () =>
        principal === null || operation.state === 'decided'
          ? { principal: principalOf(stored) }
          : options.principalNow(principal);
      const { memory, leave } = roomIn(options.memory);
      try {
        const before = { identify, companions, used: usedBy(principal), operation };
        return await new Walk(context, { ...request, memory }, before).run();
      } finally {
        leave();
      }
    },
  );
  const { authenticate, challengesFor, cors, rates, loop } = options;
  const answers = new KeptAnswers();
  const context: WalkContext = {
    ...{ clock, operations, authenticate, challengesFor, cors, rates, loop },
    router: createRouter(options.resources),
    limits: { ...settings, traceEnabled: settings.traceMethod },
    decodeContent: (bytes, codings, memory) =>
      decodeContent(bytes, codings, { bytesMax: settings.decodedBytesMax, memory }),
    lines: store.lines,
    idempotency: createIdempotency({
      ...{ store, clock, newId, lifetimeSeconds: settings.idempotencySeconds },
      sealing: { secretOf: options.secretOf, random },
    }),
    answers,
    development: settings.development,
    // Last-Modified of a busy collection repeats by the second.
    formatDate: createHttpDateCache(memoryBounds.httpDates.entries),
  };
  const walk = (request: Request, before?: Before) => new Walk(context, request, before).run();
  const handler = createRepeating(answers, { context, store, walk });
  const handleAs = (request: Request, principal: Principal): MaybePromise<Response> =>
    walk(request, { identify: () => ({ principal }) });
  const routeOf = (request: Request): string | undefined => patternOf(request, context.router);
  const probes = new Set(
    options.resources.filter(({ inReserve }) => inReserve).map(({ pattern }) => pattern),
  );
  return { handler, handleAs, operations, routeOf, probes };
}

/** The handler of all requests: the resources behind one router, and one walk for each request (§4). */

import { Buffer } from 'node:buffer';
import type { Settings } from '../config/settings.ts';
import type { End } from '../http/conduct/graph.ts';
import type { Allowance, Handler, Request, RequestMemory, Response } from '../http/message.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { RequestFields } from '../http/request-fields.ts';
import { createHttpDateCache } from '../http/syntax/http-date.ts';
import { memoryBounds } from '../memory/bounds.ts';
import { OctetCache, octetsOfValue, SeenBefore } from '../memory/octet-cache.ts';
import type { ProgramMemory } from '../memory/program-memory.ts';
import type { Used } from '../model/actor.ts';
import { audienceOf, isAdministrator, type Principal } from '../model/principal.ts';
import type { LoopWatch } from '../observe/event-loop.ts';
import type { Services } from '../store/capabilities.ts';
import { type MaybePromise, type Store, whenKnown } from '../store/store.ts';
import type { CorsPolicy } from './answer/cors.ts';
import { withAllowance } from './answer/respond.ts';
import { decodeContent } from './content/decode-content.ts';
import { createIdempotency, type Sealing } from './idempotency.ts';
import { type MessageReading, patternOf } from './message-facts.ts';
import { createOperations, type Operations } from './operations/operations.ts';
import { principalOf, type StoredRequest } from './operations/stored-request.ts';
import type { RateLimiter } from './rate-limit/rate-limiter.ts';
import type { Authenticate, Resource } from './resource.ts';
import { createRouter } from './router.ts';
import { Walk } from './walk.ts';
import {
  type Before,
  type Carried,
  countRequest,
  type Ended,
  type Found,
  identify,
  type WalkContext,
} from './walk-context.ts';

type HandlerOptions = Services & {
  readonly settings: Settings;
  /** `/api/v1` */
  readonly base: string;
  /** The path before every path that clients see: `/backend`, or empty. */
  readonly root: string;
  readonly resources: readonly Resource[];
  readonly authenticate: Authenticate;
  /** The present principal of a stored request. */
  readonly principalNow: (principal: NonNullable<StoredRequest['principal']>) => MaybePromise<Carried>;
  readonly secretOf: Sealing['secretOf'];
  readonly challengesFor: (problem: ProblemCode, fields: RequestFields) => readonly string[];
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

const boundaryBytes = 16;

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
    router: createRouter(options.resources, options.root),
    limits: { ...settings, traceEnabled: settings.traceMethod },
    decodeContent: (bytes, codings, memory) =>
      decodeContent(bytes, codings, { bytesMax: settings.decodedBytesMax, memory }),
    lines: store.lines,
    idempotency: createIdempotency(options, settings.idempotencySeconds, {
      secretOf: options.secretOf,
      random,
    }),
    answers,
    development: settings.development,
    // Last-Modified of a busy collection repeats by the second.
    formatDate: createHttpDateCache(memoryBounds.httpDates.entries),
    newBoundary: () => random(boundaryBytes).toString('hex'),
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

// Answers of GET that are given again while all that they depend on is the same: the request, the audience of its
// caller, and the revision of the row that was read (`Operation.restsOn`). Equal facts lead to the same end of the graph,
// so such a request is not walked again. It is authenticated and counted like any other, and the store gives the
// revision of the row.
//
// Only answers to plain requests are kept: without content, preferences, or dates whose meaning depends on the time of
// day. In development every request is walked, for its trace.
//

type Kept = {
  readonly kind: Kind;
  readonly ifNoneMatch: string | undefined;
  readonly audience: string;
  readonly table: string;
  readonly id: string;
  readonly rev: number;
  /** The store's when the row last had its revision; undefined: the row must be read. */
  revision: number | undefined;
  /** The answer has it as Last-Modified, which must not be later than the answer. */
  readonly updatedAt: number;
  readonly response: Response;
  /** Another answer to the same target. */
  readonly next: Kept | undefined;
};

/** The other inputs of a response, beside target, caller and state. Many responses share one, which stays in the processor's cache. */
type Kind = Pick<Request, 'version'> &
  Pick<RequestFields, 'host' | 'accept' | 'acceptEncoding' | 'origin' | 'ifModifiedSince'> & {
    readonly reading: Pick<MessageReading, 'route' | 'query'>;
  };

/** The whole answer and the 304, for two audiences. */
const answersPerTarget = 4;

const kindsKept = 16;

/** A power of two, above the number of answers that fit. */
const placesOfTargets = 16_384;

/** Objects of an answer that are not counted otherwise. */
const answerOctets = 512;

export class KeptAnswers {
  readonly #answers = new OctetCache<Kept>({ octetsMax: memoryBounds.keptAnswers.octets, octetsOf });
  #kinds: readonly Kind[] = [];
  /** Targets that do not come twice would fill the cache. */
  readonly #targets = new SeenBefore(placesOfTargets);

  /** The answers to the target, if an equal request is among those that were answered so. */
  find(request: Request): Kept | undefined {
    if (request.method !== 'GET') return undefined;
    const kept = this.#answers.get(request.target);
    return kept === undefined || !isPlain(request) ? undefined : equalTo(request, kept);
  }

  /** Keeps the response in which a walk ended, if a walk of an equal request would end in it. */
  offer(end: End, ended: Ended, response: Response): void {
    const { request, reading, standing, proposal, ask, principal, trace } = ended;
    const restsOn = reading.operation?.restsOn;
    if (restsOn === undefined || standing === undefined || ask === undefined) return;
    if (end.kind !== 'answer' || request.method !== 'GET' || trace !== undefined || !isPlain(request)) return;
    const rest = restsOn(standing, proposal);
    if (rest === undefined) return;
    const { table, row } = rest;
    if (row === undefined || row.updatedAt > ask.now || !this.#targets.note(request.target)) return;
    const { rev, updatedAt } = row;
    const { ifNoneMatch } = request.fields;
    const audience = audienceOf(principal);
    let next: Kept | undefined;
    let others = 0;
    for (let kept = this.#answers.get(request.target); kept !== undefined; kept = kept.next) {
      if (kept.rev !== rev || equalTo(request, { ...kept, next: undefined }, audience) !== undefined)
        continue;
      others += 1;
      if (others < answersPerTarget) next = { ...kept, next };
    }
    this.#answers.set(request.target, {
      ...{ kind: this.#kindOf(request, reading), ifNoneMatch, audience },
      ...{ table, id: row.id, rev, revision: undefined, updatedAt, response: weighed(response), next },
    });
  }

  #kindOf(request: Request, { route, query }: MessageReading): Kind {
    const known = this.#kinds.find(
      (kind) =>
        kind.reading.route?.resource === route?.resource &&
        kind.reading.query === query &&
        isOf(kind, request),
    );
    if (known !== undefined) return known;
    const { version, fields } = request;
    const { host, accept, acceptEncoding, origin, ifModifiedSince } = fields;
    const kind = {
      ...{ version, host, accept, acceptEncoding, origin, ifModifiedSince },
      reading: { route, query },
    };
    this.#kinds = [kind, ...this.#kinds.slice(0, kindsKept - 1)];
    return kind;
  }
}

/** Characters of the one form of a date that means the same at any time. */
const fixdateCharacters = 29;

function isPlain({ fields, protocol, reserved }: Request): boolean {
  return (
    fields.hostCount === 1 &&
    fields.contentLength === undefined &&
    fields.transferEncoding === undefined &&
    fields.contentType === undefined &&
    fields.contentEncoding === undefined &&
    fields.expect === undefined &&
    fields.prefer === undefined &&
    fields.range === undefined &&
    fields.wantReprDigest === undefined &&
    fields.ifMatch === undefined &&
    fields.ifUnmodifiedSince === undefined &&
    (fields.ifModifiedSince === undefined || fields.ifModifiedSince.length === fixdateCharacters) &&
    fields.repeated === undefined &&
    protocol === undefined &&
    reserved !== true
  );
}

function isOf(kind: Kind, { version, fields }: Request): boolean {
  return (
    kind.accept === fields.accept &&
    kind.host === fields.host &&
    kind.acceptEncoding === fields.acceptEncoding &&
    kind.origin === fields.origin &&
    kind.ifModifiedSince === fields.ifModifiedSince &&
    kind.version === version
  );
}

/** @param audience undefined: that of any caller */
function equalTo(request: Request, first: Kept, audience?: string): Kept | undefined {
  const { ifNoneMatch } = request.fields;
  for (let kept: Kept | undefined = first; kept !== undefined; kept = kept.next) {
    if (audience !== undefined && kept.audience !== audience) continue;
    if (kept.ifNoneMatch === ifNoneMatch && isOf(kept.kind, request)) return kept;
  }
  return undefined;
}

function octetsOf(first: Kept): number {
  let octets = 0;
  for (let kept: Kept | undefined = first; kept !== undefined; kept = kept.next) {
    const { kind, ifNoneMatch, audience, id, response } = kept;
    const { reading, ...fields } = kind;
    octets += answerOctets + octetsOfValue([fields, reading.query, ifNoneMatch, audience, id, response]);
  }
  return octets;
}

function weighed(response: Response): Response {
  const { content } = response;
  return typeof content === 'string' ? { ...response, octets: Buffer.byteLength(content) } : response;
}

type Repeating = {
  readonly context: WalkContext;
  readonly store: Pick<Store, 'read' | 'revision'>;
  readonly walk: (request: Request, before?: Before) => MaybePromise<Response>;
};

/** Walks a request, unless an equal one was answered before. `context.answers` are those of the first argument. */
export function createRepeating(answers: Pick<KeptAnswers, 'find'>, repeating: Repeating): Handler {
  return (request) => {
    const kept = answers.find(request);
    return kept === undefined ? repeating.walk(request) : repeatAnswer(repeating, kept, request);
  };
}

/** Answers a request like an equal one of its audience; walks it if there is none, or the row is another one now. */
function repeatAnswer(repeating: Repeating, first: Kept, request: Request): MaybePromise<Response> {
  const { context, store, walk } = repeating;
  const { reading } = first.kind;
  const found = identify(context, request, reading, {});
  // Who verifies a password waits much longer than a walk takes.
  if (found instanceof Promise) return found.then((known) => walk(request, { found: known }));
  const kept = 'problem' in found ? undefined : equalTo(request, first, audienceOf(found.principal));
  if (kept === undefined || 'problem' in found) return walk(request, { found });
  if ('confirmed' in found) found.confirmed?.catch(ignoreUntilAwaited);
  const counted = countRequest(context, request, reading, found, {});
  if (counted?.exceeded === true || context.clock() < kept.updatedAt)
    return walk(request, { found, counted });
  const give = () => answerOf(repeating, kept.response, request, { found, counted });
  const revision = store.revision();
  if (revision !== undefined && revision === kept.revision) return give();
  return whenKnown(store.read(kept.table, kept.id), (row) => {
    if (row?.rev !== kept.rev) return walk(request, { found, counted });
    kept.revision = revision;
    return give();
  });
}

function ignoreUntilAwaited(): void {
  // The read may fail first, and then nothing awaits the confirmation.
}

type Caller = {
  readonly found: Exclude<Found, { problem: unknown }>;
  readonly counted: Allowance | undefined;
};

function answerOf(
  { walk }: Repeating,
  response: Response,
  request: Request,
  { found, counted }: Caller,
): MaybePromise<Response> {
  const { principal } = found;
  if (principal.kind !== 'anonymous') request.memory?.ofPrincipal(principal.id, isAdministrator(principal));
  const answer = withAllowance(response, counted);
  const confirmed = 'confirmed' in found ? found.confirmed : undefined;
  if (confirmed === undefined) return answer;
  return confirmed.then((good) => (good ? answer : walk(request, { allowance: counted })));
}

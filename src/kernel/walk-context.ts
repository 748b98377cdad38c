/**
 * The dependencies of the walk, which compose.ts provides (it has no others); the caller, identified and counted against the rate limits; the
 * content of the request; and the finished walk, as the response builders see it.
 */
import type { End } from '../http/conduct/graph.ts';
import type { NodeName } from '../http/conduct/node.ts';
import { type Allowance, ContentFailed, type Request, type Response } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { RequestFields } from '../http/request-fields.ts';
import type { FieldName } from '../http/response-fields.ts';
import type { Used } from '../model/actor.ts';
import { anonymous, isAdministrator, type Principal } from '../model/principal.ts';
import type { LoopWatch } from '../observe/event-loop.ts';
import {
  type ChangeLines,
  type MaybePromise,
  Overtaken,
  type RowName,
  StoreUnavailable,
  type Turn,
  whenKnown,
} from '../store/store.ts';
import type { CorsPolicy } from './answer/cors.ts';
import { ReceivedOnce } from './content/receiving.ts';
import type { Idempotency } from './idempotency.ts';
import {
  contentBytesMax,
  type MessageLimits,
  type MessageReading,
  octetStream,
  shortBytesMax,
} from './message-facts.ts';
import type { RunningOperation } from './operations/deletion-marks.ts';
import type { Operations } from './operations/operations.ts';
import type { ConditionRules } from './preconditions.ts';
import type { Selected } from './ranges.ts';
import type { RateLimiter } from './rate-limit/rate-limiter.ts';
import type {
  Ask,
  Authenticate,
  Companion,
  Identified,
  Made,
  Operation,
  Proposal,
  Standing,
  Validators,
} from './resource.ts';
import type { Router } from './router.ts';

type WalkLimits = MessageLimits &
  ConditionRules & {
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
  readonly challengesFor: (problem: ProblemCode, fields: RequestFields) => readonly string[];
  /** Adds `Comity-Trace` to every response. */
  readonly development: boolean;
  readonly formatDate: (ms: number) => string;
  /** A delimiter for the parts of a content, which a sender of that content cannot have guessed. */
  readonly newBoundary: () => string;
  /** Keeps answers for equal requests; absent: every request is walked. */
  readonly answers?: { offer(end: End, ended: Ended, response: Response): void };
  /** Times the synchronous parts of each walk. */
  readonly loop: Pick<LoopWatch, 'begin' | 'end'>;
};

// The start of a walk: what is known before it, authentication, and the count against rate limits.

/** The facts that are known before the walk. */
export type Before = {
  /** Identifies the principal of a stored request, which was authenticated and counted when it arrived. */
  readonly identify?: () => MaybePromise<Carried>;
  /** The credential that a stored request was sent with. */
  readonly used?: Used | undefined;
  readonly companions?: readonly Companion[];
  /** The operation of a stored request. */
  readonly operation?: RunningOperation;
  /** The caller, identified before the walk. */
  readonly found?: Found;
  /** The limit that counted the request of this caller. */
  readonly counted?: Allowance | undefined;
  /** The allowance of a walk that starts again: the request was already counted. */
  readonly allowance?: Allowance | undefined;
};

/** True for a deletion in several units, which was judged before the first of them. */
export function isDecided({ operation }: Before): boolean {
  return operation?.state === 'decided';
}

/** The principal of a stored request, or why its credential is no longer valid. */
export type Carried = { readonly principal: Principal } | { readonly problem: ProblemCode };

const anonymousCaller: Identified = { principal: anonymous };
const overloaded: Identified = { problem: 'unavailable' };

export type Found = Identified | Carried;

type Reading = Pick<MessageReading, 'route' | 'query'>;

/**
 * Identifies the caller, perhaps subject to confirmation. A connection of the reserve serves only administrators,
 * unless the resource serves all callers there.
 */
export function identify(
  context: WalkContext,
  request: Request,
  reading: Reading,
  before: Before,
): MaybePromise<Found> {
  if (before.identify !== undefined) return before.identify();
  const identified = authenticate(context, request, reading);
  if (request.reserved !== true || reading.route?.resource.inReserve === true) return identified;
  return whenKnown(identified, (found) =>
    'problem' in found || isAdministrator(found.principal) ? found : overloaded,
  );
}

function authenticate(context: WalkContext, request: Request, reading: Reading): MaybePromise<Identified> {
  const resource = reading.route?.resource;
  if (resource?.ignoresCredentials === true) return anonymousCaller;
  if (resource?.identify !== undefined)
    return resource.identify(request, reading.query, context.authenticate);
  return context.authenticate(request, reading.query);
}

/** Identifies the caller and waits for the confirmation; used where no other work can overlap with it. */
export async function identifySurely(
  context: WalkContext,
  request: Request,
  reading: Reading,
  before: Before,
): Promise<Found> {
  for (;;) {
    const found = await identify(context, request, reading, before);
    if (!('confirmed' in found) || (await found.confirmed) !== false) return found;
  }
}

/** Counts a request against the limits once: not again for a stored request or for a walk that starts again. */
export function countRequest(
  context: WalkContext,
  request: Request,
  { route }: Reading,
  found: Found,
  before: Before,
): Allowance | undefined {
  if (before.allowance !== undefined || before.identify !== undefined) return undefined;
  const isBad = 'problem' in found;
  if (!isBad && route?.resource.unlimited === true) return undefined;
  const now = context.clock();
  const admit = route?.resource.admit;
  const principal = isBad ? anonymous : found.principal;
  return admit === undefined ? context.rates.admit(request, principal, now) : admit(request, principal, now);
}

// A finished walk, as the response builders see it, and what a builder is. Stages that the walk did not reach are undefined.

export type Ended = {
  readonly request: Request;
  readonly reading: MessageReading;
  /** The visited nodes; undefined outside development. */
  readonly trace: readonly NodeName[] | undefined;
  /** State of the limit that counted the request; undefined if none applies. */
  readonly allowance: Allowance | undefined;
  readonly ask: Ask | undefined;
  readonly principal: Principal;
  readonly bytes: Uint8Array | undefined;
  readonly standing: Standing | undefined;
  readonly proposal: Proposal | undefined;
  readonly validators: Validators | undefined;
  /** The representation that Range was evaluated for. */
  readonly selected: Selected | undefined;
  readonly problem: Problem | undefined;
  readonly made: { readonly made: Made; readonly rev: number } | undefined;
};

/** The holder of a response that stays open, such as a stream. */
export function holderOf(principal: Principal): NonNullable<Response['holder']> {
  const id = principal.kind === 'anonymous' ? undefined : principal.id;
  return { id, isAdministrator: isAdministrator(principal) };
}

/** An answer of the graph: the header fields that it may have, for the API document, and its builder. */
export type AnswerEnd = {
  /** Without Date, Content-Type, Content-Length and those of every response. */
  readonly fields: (of: Answering) => readonly FieldName[];
  readonly build: (status: number, ended: Ended, context: WalkContext) => MaybePromise<Response>;
};

/** The properties of an operation that the fields of its answers depend on. */
export type Answering = {
  readonly method: string;
  /** Accepted media types; empty: the operation ignores content. */
  readonly contentTypes: readonly string[];
  /** Its response is a report, not the representation at Location. */
  readonly action: boolean;
  /** Validators of its responses: entity tags for If-Match and If-None-Match, and dates. */
  readonly validators: 'none' | 'tag' | 'tag-and-date';
  /** Fields that the operation adds to a 200 with a representation. */
  readonly representationFields: readonly FieldName[];
  /** Those of the response to a change, and of a 303 to a read: Set-Cookie. */
  readonly madeFields: readonly FieldName[];
};

// The content of a request from its octets to the value that its operation understands (§4.4), and the memory for what it makes.

type Taken =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly content: unknown }
  /** As it arrives: the operation may still read it. */
  | { readonly ok: true; readonly received: ReceivedOnce; readonly content: unknown }
  /** `bytes`: decoded content, if decoding succeeded. */
  | { readonly ok: false; readonly bytes: Uint8Array | undefined; readonly problem: Problem };

/** @throws StoreUnavailable if no client waits any longer */
export function requireClient(request: Pick<Request, 'isGone'> | undefined): void {
  if (request?.isGone === true) throw new StoreUnavailable('the client has left', { retryAfterSeconds: 1 });
}

/** Goes on once there is room for what a request without content makes. @throws StoreUnavailable */
export function afterRoom(
  { memory }: Request,
  { makes }: Pick<Operation, 'makes'>,
  goOn: () => Promise<void> | undefined,
): Promise<void> | undefined {
  const room = makes === undefined ? undefined : memory?.makeRoom(makes(undefined));
  return room === undefined ? goOn() : room.then(goOn);
}

/** Waits for the memory of a change of the row that was found; undefined: it is there. Rejects with StoreUnavailable. */
export function roomFor(
  { memory }: Request,
  { makesOf }: Pick<Operation, 'makesOf'>,
  found: Standing,
): Promise<void> | undefined {
  try {
    return memory?.makeRoom(makesOf?.(found) ?? 0);
  } catch (error) {
    return Promise.reject(error);
  }
}

/**
 * Takes the content of a request: reads, decodes and parses it (§4.4); with `raw`, leaves the octets as received
 * (§4.14.1).
 */
export async function takeContent(
  { limits, decodeContent, loop }: WalkContext,
  request: Request,
  { codings, mediaType, operation, route }: MessageReading,
  ask: Ask,
): Promise<Taken> {
  if (operation?.understand === undefined) throw new Error('the operation has no understand stage');
  const received = await request.readContent(contentBytesMax(operation, limits, false));
  if (!received.ok) {
    const { ok, ...problem } = received;
    return { ok, bytes: undefined, problem };
  }
  let { bytes } = received;
  // Content that waits to make something has no room to be processed, which others need.
  const isWhole = operation.raw === true || codings.length === 0;
  const octets = operation.makes?.(isWhole ? bytes : undefined) ?? 0;
  const madeMax = request.memory?.madeMax ?? octets;
  if (octets > madeMax) {
    const message = `the request would take up to ${octets} octets of memory, and ${madeMax} are the limit (COMITY_MEMORY_BYTES_MAX): send less at once`;
    return { ok: false, bytes: undefined, problem: { code: 'content_too_large', message } };
  }
  const room = request.memory?.makeRoom(octets);
  if (room !== undefined) await room;
  // Only complete content takes this room, so a slow upload does not delay other requests.
  const work = request.memory?.roomToProcess(bytes.length);
  if (work !== undefined) await work;
  if (operation.raw !== true) {
    const decoding = decodeContent(bytes, codings, request.memory);
    const decoded = decoding instanceof Promise ? await decoding : decoding;
    if (!decoded.ok) return { ok: false, bytes: undefined, problem: { code: decoded.code } };
    bytes = decoded.bytes;
    if (bytes.length > (shortBytesMax(operation, limits) ?? bytes.length)) {
      return { ok: false, bytes: undefined, problem: { code: 'content_too_large' } };
    }
    if (mediaType === undefined) throw new Error('content that is parsed requires a media type');
  }
  // Contents that arrive, or are decoded, at the same time would be parsed in one turn of the event loop.
  const turn = request.memory?.nextTurn(bytes.length);
  if (turn !== undefined) await turn;
  const begun = loop.begin();
  const parsing = operation.understand(ask, bytes, mediaType ?? octetStream);
  loop.end(begun, request, route?.resource.pattern);
  // Verifying a signature takes 10 µs: the walk goes on without a promise.
  const understood = parsing instanceof Promise ? await parsing : parsing;
  return understood.ok
    ? { ok: true, bytes, content: understood.value }
    : { ok: false, bytes, problem: understood.problem };
}

/** Has the operation take the content as it arrives, now or after the state was judged. */
export async function receiveContent(
  { limits, loop }: WalkContext,
  request: Request,
  { mediaType, operation, route, facts }: MessageReading,
  ask: Ask,
): Promise<Taken> {
  if (operation?.receive === undefined) throw new Error('the operation has no receive stage');
  const bytesMax = contentBytesMax(operation, limits, true);
  const received = new ReceivedOnce(request, { bytesMax, isDueNow: facts.idempotencyKey === 'given' });
  const begun = loop.begin();
  const receiving = operation.receive(ask, received, mediaType ?? octetStream);
  loop.end(begun, request, route?.resource.pattern);
  const understood = await Promise.resolve(receiving).catch(refusalOf);
  return understood.ok
    ? { ok: true, received, content: understood.value }
    : { ok: false, bytes: undefined, problem: understood.problem };
}

/** Waits for a proposal of content that arrives meanwhile. */
export function orRefused(proposing: MaybePromise<Proposal>): MaybePromise<Proposal> {
  return proposing instanceof Promise ? proposing.catch(refusalOf) : proposing;
}

/** The refusal of content that failed while it arrived. @throws any other error */
function refusalOf(error: unknown): { readonly ok: false; readonly problem: Problem } {
  if (error instanceof ContentFailed) return { ok: false, problem: error.problem };
  throw error;
}

// The turn of a walk at the rows that it changes (store/lines.ts). A change without a precondition that finds a busy
// row, or that was superseded, waits in the line of the row and then continues at `exists`. A change with a
// precondition does not wait the first time that it is superseded: the new state decides it, mostly as 412.
//
// Changes without a precondition form a chain: each is computed from the one before, which is not committed yet. Only a
// committed change is answered from such a state; for any other end the walk waits until the state is settled, and
// starts again.

type LinesOfRows = Pick<ChangeLines, 'isBusy' | 'turn'>;

export class WalkTurn {
  readonly #lines: LinesOfRows;
  readonly #request: Request;
  readonly #isConditional: boolean;
  readonly #chains: boolean;
  #turn: Turn | undefined;
  #hasLost = false;

  /**
   * @param isConditional the request has a precondition
   * @param chains as in `Operation`
   */
  constructor(lines: LinesOfRows, request: Request, isConditional: boolean, chains: boolean) {
    this.#lines = lines;
    this.#request = request;
    this.#isConditional = isConditional;
    this.#chains = chains && !isConditional;
  }

  /** Takes the turn of a chain if it is free. Counts as superseded if other changes of the row are under way, and this walk waits not yet. */
  busyAt(row: RowName | undefined): Overtaken | undefined {
    if (row === undefined || this.#isConditional || this.#turn !== undefined) return undefined;
    if (this.#lines.isBusy(row)) return new Overtaken(row);
    if (this.#chains) this.#begin().takeFree(row);
    return undefined;
  }

  get isHeld(): boolean {
    return this.#turn !== undefined;
  }

  /** True if the change may be computed from one that is not committed yet. */
  get isChained(): boolean {
    return this.#turn?.isChained === true;
  }

  /**
   * Waits for the turn.
   * @param isAlone waits until the earlier changes of the row are settled
   * @returns false if it did not wait
   * @throws LineUnavailable
   */
  async take(row: RowName, isAlone = false): Promise<boolean> {
    if (this.#isConditional && !this.#hasLost) {
      this.#hasLost = true;
      return false;
    }
    await this.#begin().take(row, isAlone);
    return true;
  }

  #begin(): Turn {
    this.#turn ??= this.#lines.turn(this.#request.onGone?.bind(this.#request), this.#chains);
    return this.#turn;
  }

  release(): void {
    this.#turn?.release();
  }
}

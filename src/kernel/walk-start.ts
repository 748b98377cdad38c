/** The start of a walk: what is known before it, authentication, the count against rate limits, and the request as its operation sees it. */
import type { Allowance, Request } from '../http/message.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { Used } from '../model/actor.ts';
import { anonymous, isAdministrator, type Principal } from '../model/principal.ts';
import { type MaybePromise, whenKnown } from '../store/store.ts';
import type { MessageReading } from './message-facts.ts';
import type { RunningOperation } from './operations/deletion-marks.ts';
import type { Ask, Companion, Identified } from './resource.ts';
import type { WalkContext } from './walk-context.ts';
import type { WalkTurn } from './walk-turn.ts';

/** What is known before the walk. */
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

/** The request as its operation sees it. */
export function askOf(
  { rates }: WalkContext,
  request: Request,
  { route, query, preferences }: MessageReading,
  { operation, used }: Before,
  asked: Pick<Ask, 'principal' | 'now' | 'known' | 'companions'> & { readonly turn: WalkTurn | undefined },
): Ask {
  const { principal, now, known, companions, turn } = asked;
  return {
    request,
    captures: route?.captures ?? [],
    query,
    preferences,
    principal,
    party: rates.partyOf(request, principal),
    known,
    used: known ?? used,
    now,
    companions,
    operation,
    isChained: turn?.isChained === true,
    hasTurn: turn?.isHeld === true,
  };
}

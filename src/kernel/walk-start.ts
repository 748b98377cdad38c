/** What a walk begins with: what is settled already, and who asks. */
import type { Allowance, Request } from '../http/message.ts';

import type { ProblemCode } from '../http/problem-registry.ts';
import { anonymous, isAdministrator, type Principal } from '../model/principal.ts';
import type { MaybePromise } from '../store/store.ts';
import { whenKnown } from '../store/when-known.ts';
import type { MessageReading } from './message-facts.ts';
import type { Companion, Identified } from './resource.ts';
import type { WalkContext } from './walk-context.ts';

/** What is settled before the walk begins. */
export type Before = {
  /** Finds out whom a stored request is carried out for; it was authenticated and counted when it came. */
  readonly identify?: () => MaybePromise<Carried>;
  readonly companions?: readonly Companion[];
  /** The request was counted by a walk that begins again. */
  readonly allowance?: Allowance | undefined;
};

/** Whom a stored request is carried out for, or why that is over. */
export type Carried = { readonly principal: Principal } | { readonly problem: ProblemCode };

const nobody: Identified = { principal: anonymous };
const overloaded: Identified = { problem: 'unavailable' };

export type Found = Identified | Carried;

/**
 * Finds out who asks, perhaps still to be confirmed. On a connection of the reserve all but administrators are refused, unless the
 * resource is served there to anyone.
 */
export function identify(
  context: WalkContext,
  request: Request,
  reading: MessageReading,
  before: Before,
): MaybePromise<Found> {
  if (before.identify !== undefined) return before.identify();
  const identified = authenticate(context, request, reading);
  if (request.reserved !== true || reading.route?.resource.inReserve === true) return identified;
  return whenKnown(identified, (who) =>
    'problem' in who || isAdministrator(who.principal) ? who : overloaded,
  );
}

function authenticate(
  context: WalkContext,
  request: Request,
  reading: MessageReading,
): MaybePromise<Identified> {
  const resource = reading.route?.resource;
  if (resource?.ignoresCredentials === true) return nobody;
  if (resource?.identify !== undefined)
    return resource.identify(request, reading.query, context.authenticate);
  return context.authenticate(request, reading.query);
}

/** Finds out who asks, where nothing is done meanwhile: what comes back is confirmed. */
export async function identifySurely(
  context: WalkContext,
  request: Request,
  reading: MessageReading,
  before: Before,
): Promise<Found> {
  for (;;) {
    const found = await identify(context, request, reading, before);
    if (!('confirmed' in found) || (await found.confirmed) !== false) return found;
  }
}

/** Counts the request against the limits, once: a stored request was counted when it came, as was one whose walk begins again. */
export function countRequest(
  context: WalkContext,
  request: Request,
  { route }: MessageReading,
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

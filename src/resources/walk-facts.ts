/** What the walk writes into the facts as it gathers them (http/conduct/facts.ts), one function for each group. */
import type { Facts } from '../http/conduct/facts.ts';
import type { Request } from '../http/message.ts';
import type { Overtaken } from '../store/store.ts';
import { type Conditions, evaluateConditions, unconditional } from './preconditions.ts';
import type { Result, Standing, Validators } from './resource.ts';

export function writeStanding(facts: Facts, standing: Standing): void {
  // A walk that looks again has no result yet.
  facts.result = undefined;
  facts.exists = standing.exists;
  facts.visible = standing.visible;
  facts.permitted = standing.permitted;
  facts.elsewhere = standing.elsewhere !== undefined;
}

/**
 * @param request undefined where it has no conditions, or none that count
 * @param validators null where nothing stands that they could be of
 * @param now milliseconds since the epoch
 */
export function writeConditions(
  facts: Facts,
  request: Pick<Request, 'method' | 'fields'> | undefined,
  validators: Validators | null,
  now: number,
): void {
  const conditions = request === undefined ? unconditional : conditionsOf(request, validators, now);
  facts.ifMatch = conditions.ifMatch;
  facts.ifUnmodifiedSince = conditions.ifUnmodifiedSince;
  facts.ifNoneMatch = conditions.ifNoneMatch;
  facts.ifModifiedSince = conditions.ifModifiedSince;
}

function conditionsOf(
  { method, fields }: Pick<Request, 'method' | 'fields'>,
  validators: Validators | null,
  now: number,
): Conditions {
  const safe = method === 'GET' || method === 'HEAD' || method === 'QUERY';
  return evaluateConditions(fields, validators, safe, now);
}

export function writeResult(facts: Facts, result: Exclude<Result, Overtaken>): void {
  if ('made' in result) {
    facts.result = 'made';
    facts.created = result.made.created;
    facts.queued = result.made.queued ?? false;
    facts.told = result.made.doc !== null;
  } else {
    facts.result = 'refused';
    facts.resultProblem = result.refused.code;
  }
}

/** The graph goes back to `exists` after `superseded`; every fact from there on must be gathered again. */
export function writeSuperseded(facts: Facts): void {
  facts.result = 'superseded';
  facts.exists = undefined;
  facts.proposalProblem = undefined;
  facts.ifMatch = undefined;
}

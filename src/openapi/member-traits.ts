/**
 * What access rules, references and unique fields of a collection settle for its operations (§4.7.1, §5.1, §7).
 */
import type { ProblemCode } from '../http/problem-registry.ts';
import { type Action, permission } from '../model/access.ts';
import type { Collection } from '../model/collection.ts';
import type { Principal } from '../model/principal.ts';
import { asksFunction, callersOf } from './callers.ts';
import { gateOf, plainRead, type Traits } from './traits.ts';

/** Codes that reading any content can raise. */
export const contentCodes: readonly ProblemCode[] = [
  'content_malformed',
  'content_missing',
  'content_too_large',
  'request_timeout',
];

/**
 * Traits of an operation on a member, as resources/collection/standing.ts judges it.
 * @param creates whether it may create where nothing stands
 */
export function memberTraits(collection: Collection, action: Action, creates = false): Traits {
  const { access, conceal, requireMatch } = collection;
  const rules = [[access[action], action] as const, ...(creates ? [[access.create, 'create'] as const] : [])];
  const ruled = rules.map(([rule]) => rule);
  const callers = callersOf([access.read, ...ruled]).filter((principal) =>
    rules.some(([rule, of]) => permission(rule, of, principal) !== 'denied'),
  );
  const sees = (principal: Principal) => permission(access.read, 'read', principal) === 'granted';
  const may = (principal: Principal) =>
    (action === 'read' || permission(access[action], action, principal) === 'granted') &&
    (!creates || permission(access.create, 'create', principal) !== 'denied');
  const allSee = !asksFunction(access.read) && callers.every(sees);
  const allMay = (action === 'read' || !ruled.some(asksFunction)) && callers.every(may);
  return {
    ...plainRead,
    gate: gateOf(rules),
    matchRequired: action !== 'read' && requireMatch,
    mayBeMissing: true,
    mayBeHidden: conceal && !allSee,
    mayBeClosed: !allMay || (!conceal && !allSee),
    validators: 'tag-and-date',
  };
}

/** What the store can refuse. */
export function storeCodes(
  collection: Collection,
  change: 'create' | 'update' | 'delete',
): readonly ProblemCode[] {
  const codes: ProblemCode[] = ['unavailable'];
  if (change === 'delete') return collection.dependants.length === 0 ? codes : [...codes, 'dependants_exist'];
  // A unique field that is fixed at creation cannot become another's in a later change.
  const contested = collection.unique.filter(
    ({ path }) => change === 'create' || !collection.unpatchable.has(path[0] ?? ''),
  );
  if (contested.length > 0) codes.push('unique_taken');
  if (collection.references.length > 0) codes.push('reference_missing');
  return codes;
}

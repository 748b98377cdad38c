/**
 * Evaluates the conditional fields against the current state (RFC 9110 §13.1): each is true, false or absent. The graph
 * decides their precedence, and which answers 304, 412 and 428 are (http/conduct/target-nodes.ts).
 */
import type { Condition, Facts } from '../http/conduct/facts.ts';
import type { RequestFields } from '../http/request-fields.ts';
import { acceptsCoding } from '../http/syntax/accept.ts';
import {
  type EntityTag,
  formatEntityTag,
  parseEntityTagList,
  strongMatch,
} from '../http/syntax/entity-tag.ts';
import { parseHttpDate } from '../http/syntax/http-date.ts';
import type { Validators } from './resource.ts';

/** `weakIfMatch`: If-Match takes weak tags, because proxies that compress weaken those of this program. */
export type ConditionRules = { readonly weakIfMatch: boolean };

/**
 * @param fields undefined if no condition applies
 * @param validators of the selected representation; null if none exists
 * @param now milliseconds since the epoch
 */
export function writeConditions(
  facts: Facts,
  fields: RequestFields | undefined,
  validators: Validators | null,
  now: number,
  { weakIfMatch }: ConditionRules,
): void {
  facts.ifMatch = 'absent';
  facts.ifUnmodifiedSince = 'absent';
  facts.ifNoneMatch = 'absent';
  facts.ifModifiedSince = 'absent';
  if (fields === undefined) return;
  const { method } = facts;
  const modifiedAt = validators?.modifiedAt ?? null;
  const isSafe = method === 'GET' || method === 'HEAD' || method === 'QUERY';
  facts.ifMatch = matched(
    fields.ifMatch,
    validators,
    (listed, tag) => (weakIfMatch || !listed.weak) && names(listed, tag),
  );
  facts.ifUnmodifiedSince = unmodified(fields.ifUnmodifiedSince, modifiedAt, now);
  facts.ifNoneMatch = negate(
    matched(fields.ifNoneMatch, validators, isSafe ? (listed, tag) => names(listed, tag, fields) : names),
  );
  // It applies to no other method.
  if (isSafe) facts.ifModifiedSince = negate(unmodified(fields.ifModifiedSince, modifiedAt, now));
}

export function isConditional(fields: RequestFields): boolean {
  return (
    fields.ifNoneMatch !== undefined ||
    fields.ifMatch !== undefined ||
    fields.ifModifiedSince !== undefined ||
    fields.ifUnmodifiedSince !== undefined
  );
}

/**
 * True unless If-Range names another representation (RFC 9110 §13.1.5), which must be known to be the same octet for octet: a tag by the
 * strong comparison, or the exact date of Last-Modified if its second is over, since a later change in it would have the same date.
 * @param validators of the representation without a content coding
 */
export function isSameRange(
  ifRange: string | undefined,
  { tag, modifiedAt }: Validators,
  now: number,
): boolean {
  if (ifRange === undefined) return true;
  const list = parseEntityTagList(ifRange);
  if (list === undefined) {
    if (modifiedAt === null) return false;
    const modifiedMs = toSecond(modifiedAt);
    return parseHttpDate(ifRange, now) === modifiedMs && now >= modifiedMs + 1000;
  }
  const [listed] = list;
  if (list === '*' || list.length !== 1 || typeof listed !== 'object' || tag === null) return false;
  return strongMatch(listed, { weak: false, opaque: tag });
}

/**
 * Returns the listed tag that matches the current state. For a read, only codings that Accept-Encoding allows count: a
 * 304 makes a cache reuse the stored representation (RFC 9110 §15.4.5, RFC 9111 §4.3.3).
 */
export function heldTag({ ifNoneMatch, acceptEncoding }: RequestFields, tag: string): EntityTag | undefined {
  const list = ifNoneMatch === undefined ? undefined : parseEntityTagList(ifNoneMatch);
  if (list === undefined || list === '*') return undefined;
  return list.find((listed) => names(listed, tag, { acceptEncoding }));
}

function matched(
  field: string | undefined,
  validators: Validators | null,
  isNamed: (listed: EntityTag, tag: string) => boolean,
): Condition {
  if (field === undefined) return 'absent';
  const list = parseEntityTagList(field);
  // The graph has already refused a malformed list.
  if (list === undefined || validators === null) return 'false';
  if (list === '*') return 'true';
  const { tag } = validators;
  return tag !== null && list.some((listed) => isNamed(listed, tag)) ? 'true' : 'false';
}

function names(listed: EntityTag, tag: string, accepting?: Pick<RequestFields, 'acceptEncoding'>): boolean {
  const coding = codingNamed(listed.opaque, tag);
  return coding !== undefined && (accepting === undefined || acceptsCoding(accepting.acceptEncoding, coding));
}

/** Compares whole seconds, the precision of Last-Modified. */
function unmodified(field: string | undefined, modifiedAt: number | null, now: number): Condition {
  if (field === undefined || modifiedAt === null) return 'absent';
  const date = parseHttpDate(field, now);
  if (date === undefined) return 'absent';
  return toSecond(modifiedAt) <= date ? 'true' : 'false';
}

function toSecond(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

function negate(condition: Condition): Condition {
  if (condition === 'absent') return 'absent';
  return condition === 'true' ? 'false' : 'true';
}

/**
 * Content codings of responses, best first for equal weights. The entity tag of a member is its `rev`; a coding adds a
 * suffix, because a strong tag must differ between codings (RFC 9110 §8.8.3), and conditions accept any coding of the
 * current state.
 */
export const codings = ['br', 'gzip', 'identity'] as const;

export type Coding = (typeof codings)[number];

export function entityTag(tag: string, coding: Coding): string {
  return formatEntityTag({ weak: false, opaque: coding === 'identity' ? tag : `${tag}-${coding}` });
}

/** Returns the coding that the tag's suffix names; undefined if the tag is of another state. */
function codingNamed(opaque: string, tag: string): Coding | undefined {
  if (opaque === tag) return 'identity';
  if (!opaque.startsWith(tag)) return undefined;
  return codings.find((coding) => coding !== 'identity' && opaque.slice(tag.length) === `-${coding}`);
}

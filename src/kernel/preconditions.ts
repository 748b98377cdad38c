/**
 * Evaluates the conditional fields against what stands (RFC 9110 §13.1). The order in which they count is the
 * graph's business; here each is only found true, false or absent.
 */
import type { Condition } from '../http/conduct/facts.ts';
import type { RequestFields } from '../http/request-fields.ts';
import { acceptsCoding } from '../http/syntax/accept-encoding.ts';
import { type EntityTag, formatEntityTag, parseEntityTagList } from '../http/syntax/entity-tag.ts';
import { parseHttpDate } from '../http/syntax/http-date.ts';
import type { Validators } from './resource.ts';

export type Conditions = {
  readonly ifMatch: Condition;
  readonly ifUnmodifiedSince: Condition;
  readonly ifNoneMatch: Condition;
  readonly ifModifiedSince: Condition;
};

export const unconditional: Conditions = {
  ifMatch: 'absent',
  ifUnmodifiedSince: 'absent',
  ifNoneMatch: 'absent',
  ifModifiedSince: 'absent',
};

/**
 * @param validators of the selected representation; null when none exists
 * @param safe GET, HEAD or QUERY: the only methods that If-Modified-Since applies to
 */
export function evaluateConditions(
  fields: RequestFields,
  validators: Validators | null,
  safe: boolean,
  now: number,
): Conditions {
  if (!isConditional(fields)) return unconditional;
  const modifiedAt = validators?.modifiedAt ?? null;
  return {
    ifMatch: matched(fields.ifMatch, validators, (listed, tag) => !listed.weak && names(listed, tag)),
    ifNoneMatch: negate(
      matched(fields.ifNoneMatch, validators, safe ? (listed, tag) => names(listed, tag, fields) : names),
    ),
    ifUnmodifiedSince: unmodified(fields.ifUnmodifiedSince, modifiedAt, now),
    ifModifiedSince: safe ? negate(unmodified(fields.ifModifiedSince, modifiedAt, now)) : 'absent',
  };
}

/** Whether any conditional field came. */
export function isConditional(fields: RequestFields): boolean {
  return (
    fields.ifNoneMatch !== undefined ||
    fields.ifMatch !== undefined ||
    fields.ifModifiedSince !== undefined ||
    fields.ifUnmodifiedSince !== undefined
  );
}

/**
 * The listed tag that names the current state. In a read only a representation counts that the client accepts the coding of:
 * a 304 makes a cache use it for the answer (RFC 9110 §15.4.5, RFC 9111 §4.3.3), and Accept-Encoding may refuse it.
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
  // The message stage refuses a malformed list before this point.
  if (list === undefined || validators === null) return 'false';
  if (list === '*') return 'true';
  const { tag } = validators;
  return tag !== null && list.some((listed) => isNamed(listed, tag)) ? 'true' : 'false';
}

function names(listed: EntityTag, tag: string, accepting?: Pick<RequestFields, 'acceptEncoding'>): boolean {
  const coding = codingNamed(listed.opaque, tag);
  return coding !== undefined && (accepting === undefined || acceptsCoding(accepting.acceptEncoding, coding));
}

/** Last-Modified has whole seconds, so the comparison has too. */
function unmodified(field: string | undefined, modifiedAt: number | null, now: number): Condition {
  if (field === undefined || modifiedAt === null) return 'absent';
  const date = parseHttpDate(field, now);
  if (date === undefined) return 'absent';
  return Math.floor(modifiedAt / 1000) * 1000 <= date ? 'true' : 'false';
}

function negate(condition: Condition): Condition {
  if (condition === 'absent') return 'absent';
  return condition === 'true' ? 'false' : 'true';
}

/**
 * Entity tags of representations (RFC 9110 §8.8.3). The tag of a member is its `rev`; a content coding adds a
 * suffix, because a strong tag must differ between codings, and conditions accept any coding of the current state.
 *
 * Content codings the server applies, best first for equal weights.
 */
export const codings = ['br', 'gzip', 'identity'] as const;

export type Coding = (typeof codings)[number];

/** The ETag field value of a representation under a coding. */
export function entityTag(tag: string, coding: Coding): string {
  return formatEntityTag({ weak: false, opaque: coding === 'identity' ? tag : `${tag}-${coding}` });
}

/** The coding of the representation that an opaque tag names; undefined when it names another state. */
function codingNamed(opaque: string, tag: string): Coding | undefined {
  if (opaque === tag) return 'identity';
  if (!opaque.startsWith(tag)) return undefined;
  return codings.find((coding) => coding !== 'identity' && opaque.slice(tag.length) === `-${coding}`);
}

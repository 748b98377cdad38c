/** The reasons for which a message is refused. A value, not an exception: the usual response is 400 (§4.14). */

export type RefusalReason =
  /** A header that the scheme needs is absent. */
  | 'missing'
  /** A header does not have the scheme's form, or is longer than any sender makes it. */
  | 'malformed'
  /** No signature of the supported version was made with one of the secrets or keys. */
  | 'no-match'
  /** Signed too long ago: sent again, or by a clock that is behind. */
  | 'stale'
  /** Signed too far in the future. */
  | 'ahead';

export type Refused = { readonly ok: false; readonly reason: RefusalReason };

/** A header field as frameworks provide it. */
export type FieldValue = string | null | undefined;

/** Bounds on untrusted input. */
const headerCharactersMax = 8192;
export const signaturesMax = 16;

export function refused(reason: RefusalReason): Refused {
  return { ok: false, reason };
}

/**
 * Returns why the field cannot be used; undefined: it can. A value that is not a text was repeated, or is of a wrong
 * type.
 */
export function refuseField(value: FieldValue | readonly string[]): 'missing' | 'malformed' | undefined {
  if (value === null || value === undefined || value === '') return 'missing';
  return typeof value !== 'string' || value.length > headerCharactersMax ? 'malformed' : undefined;
}

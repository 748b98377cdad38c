/** Why a message is not taken for what its sender sent. A value and no exception: answering 400 (§4.14) is the usual thing to do. */

export type RefusalReason =
  /** A header that the scheme needs is not there. */
  | 'missing'
  /** A header does not have the scheme's form, or is longer than any sender makes it. */
  | 'malformed'
  /** No signature of the supported version was made with one of the secrets or keys. */
  | 'no-match'
  /** Signed, and too long ago: sent again, or by a clock that is behind. */
  | 'stale'
  /** Signed, and too far in the future. */
  | 'ahead';

export type Refused = { readonly ok: false; readonly reason: RefusalReason };

/** A header field as frameworks hand it out. */
export type FieldValue = string | null | undefined;

/** Bounds on what is looked at, whoever sent it. */
const headerCharactersMax = 8192;
export const signaturesMax = 16;

export function refused(reason: RefusalReason): Refused {
  return { ok: false, reason };
}

/** Why the field cannot be read; undefined: it can be. What is no text came more than once, or from somewhere else. */
export function refuseField(value: FieldValue | readonly string[]): 'missing' | 'malformed' | undefined {
  if (value === null || value === undefined || value === '') return 'missing';
  return typeof value !== 'string' || value.length > headerCharactersMax ? 'malformed' : undefined;
}

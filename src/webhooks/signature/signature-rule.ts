/**
 * A sender's way of signing (§5.6), as data: the three schemes, and vendors' variants; and the reasons for which a message is refused.
 * verify-by-rule.ts verifies by such a rule.
 */

export type SignatureRule = HmacRule | TokenRule;

export type Hash = 'sha1' | 'sha256' | 'sha512';

/** An HMAC over the body and other signed parts. */
export type HmacRule = {
  readonly kind: 'hmac';
  /** The field that holds the signatures, in lower case. */
  readonly header: string;
  readonly hash: Hash;
  readonly encoding: 'hex' | 'base64';
  /**
   * The text before each signature: `sha256=`, `v1=`, `v1,`; may be empty. Entries with another prefix are of another
   * version, and ignored.
   */
  readonly prefix: string;
  /** Separates signatures; null: the field holds one. */
  readonly separator: ',' | ' ' | null;
  /**
   * The signed content: text in which `{body}`, `{timestamp}`, `{id}`, `{url}` and `{form}` stand for parts of the
   * message. `{url}` is the complete URL that the sender called; `{form}` the parameters of a form body, sorted by
   * name, each name followed by its value.
   */
  readonly signed: string;
  /**
   * The place of the Unix seconds `{timestamp}`: a field of their own, or the field of the signatures, after a prefix
   * such as `t=`.
   */
  readonly timestamp?: { readonly header: string } | { readonly prefix: string } | undefined;
  /** The field of `{id}`. */
  readonly id?: string | undefined;
  /** The part of a secret that is the key: its text, or the octets that it holds as base64 after `whsec_`. */
  readonly key: 'text' | 'base64';
  /**
   * Greatest difference of the signed time from now (§8), in seconds; 0: any time. Without a timestamp it has no
   * effect.
   */
  readonly toleranceSeconds: number;
  /** The text before Ed25519 signatures over the same content, such as `v1a,`. */
  readonly asymmetricPrefix?: string | undefined;
  /**
   * If `{form}` is signed: the parameter of `{url}` that holds the SHA-256 of a body that is not a form, in
   * hexadecimal.
   */
  readonly bodyDigestParameter?: string | undefined;
};

/** The field holds a secret itself, which authenticates the sender but not the content of the message. */
export type TokenRule = {
  readonly kind: 'token';
  /** In lower case. */
  readonly header: string;
};

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

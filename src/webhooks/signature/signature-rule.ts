/**
 * A sender's way of signing (§5.6), as data: the three schemes, and vendors' variants; and the reasons for which a message is refused.
 * verify-by-rule.ts verifies by such a rule.
 */

export type SignatureRule = HmacRule | KeyPairRule | TokenRule;

export type Hash = 'sha1' | 'sha256' | 'sha512';

export type Encoding = 'hex' | 'base64' | 'base64url';

/** The signed parts of a message, and where its signatures are. */
export type SignedParts = {
  /**
   * The field that holds the signatures, in lower case; a JSON Pointer: the member of the body. So are the fields of `timestamp` and `id`.
   */
  readonly header: string;
  readonly encoding: Encoding;
  /**
   * The text before each signature: `sha256=`, `v1=`, `v1,`; may be empty. Entries with another prefix are of another
   * version, and ignored.
   */
  readonly prefix: string;
  /** Separates signatures; null: the field holds one. */
  readonly separator: ',' | ' ' | ';' | null;
  /**
   * The signed content: text in which `{body}`, `{timestamp}`, `{id}`, `{url}` and `{form}` stand for parts of the
   * message. `{url}` is the complete URL that the sender called; `{form}` the parameters of a form body, sorted by
   * name, each name followed by its value.
   */
  readonly signed: string;
  /**
   * The place of the time `{timestamp}`: a field of its own, or the field of the signatures, after a prefix such as `t=`.
   */
  readonly timestamp?: TimestampPlace | undefined;
  /** The field of `{id}`. */
  readonly id?: string | undefined;
  /**
   * Greatest difference of the signed time from now (§8), in seconds; 0: any time. Without a timestamp it has no
   * effect.
   */
  readonly toleranceSeconds: number;
  /**
   * If `{form}` is signed: the parameter of `{url}` that holds the SHA-256 of a body that is not a form, in
   * hexadecimal.
   */
  readonly bodyDigestParameter?: string | undefined;
  /** False: the sender signs neither `{body}` nor `{form}`, so that its signature proves who sent, and not the content. */
  readonly signsContent?: boolean | undefined;
};

export type TimestampPlace = ({ readonly header: string } | { readonly prefix: string }) & {
  /** Default `seconds`, of Unix time; `rfc3339`: `2026-12-01T10:00:00Z`. */
  readonly as?: TimestampForm | undefined;
};

export type TimestampForm = 'seconds' | 'milliseconds' | 'rfc3339';

/** An HMAC over the body and other signed parts. */
export type HmacRule = SignedParts & {
  readonly kind: 'hmac';
  readonly hash: Hash;
  /** The part of a secret that is the key: its text, or the octets that it holds as hexadecimal, or as base64 after `whsec_`. */
  readonly key: 'text' | 'base64' | 'hex';
  /** The text before Ed25519 signatures over the same content, such as `v1a,`. */
  readonly asymmetricPrefix?: string | undefined;
};

/** A signature by a private key of the sender, whose public keys the receiver knows. */
export type KeyPairRule = SignedParts & {
  readonly kind: 'key-pair';
  readonly algorithm: KeyPairAlgorithm;
};

/** `ecdsa`: over P-256 with SHA-256, as DER (RFC 3279 §2.2.3); `rsa`: RSASSA-PKCS1-v1_5 with SHA-256. */
export type KeyPairAlgorithm = 'ed25519' | 'ecdsa' | 'rsa';

/** The algorithm of the public keys by which a sender's signatures may be verified; undefined: it signs by secrets alone. */
export function keyAlgorithmOf(rule: SignatureRule): KeyPairAlgorithm | undefined {
  if (rule.kind === 'key-pair') return rule.algorithm;
  return rule.kind === 'hmac' && rule.asymmetricPrefix !== undefined ? 'ed25519' : undefined;
}

/** The field holds a secret itself, which authenticates the sender but not the content of the message. */
export type TokenRule = {
  readonly kind: 'token';
  /** In lower case; a JSON Pointer: the member of the body. */
  readonly header: string;
  /** The text before the secret, such as `Bearer `; absent: none. */
  readonly prefix?: string | undefined;
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

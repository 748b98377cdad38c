/**
 * A sender's way of signing (§5.6), as data: the three schemes, and vendors' variants; and the reasons for which a message is refused.
 * verify-by-rule.ts verifies by such a rule.
 */

export type SignatureRule = HmacRule | KeyPairRule | JwtRule | TokenRule;

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
   * The signed content: text in which `{body}`, `{timestamp}`, `{id}`, `{url}`, `{form}` and others stand for parts of the
   * message. `{url}` is the complete URL that the sender called; `{form}` the parameters of a form body, sorted by
   * name, each name followed by its value.
   * `{crc32}` is the CRC-32 of the body in decimal; `{/Type}` the member `Type` of the body.
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
  /**
   * If `{lines}` is signed: the names of members of the body, in order. Each that is a text is signed as its name, a line feed, its value and
   * a line feed.
   */
  readonly lines?: readonly string[] | undefined;
  /** If `{receiver}` is signed: the name that the sender has for this receiver. An empty text stands for one that the declaration must give. */
  readonly receiver?: string | undefined;
  /** False: the sender signs neither `{body}` nor `{form}` nor `{lines}`, so that its signature proves who sent, and not the content. */
  readonly signsContent?: boolean | undefined;
};

export type TimestampPlace = ({ readonly header: string } | { readonly prefix: string }) & {
  /** Default `s`, of Unix time; `rfc3339`: `2026-12-01T10:00:00Z`. */
  readonly unit?: TimestampUnit | undefined;
};

export type TimestampUnit = 's' | 'ms' | 'rfc3339';

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
  readonly kind: KeyPairAlgorithm;
  /** For `rsa`, in place of keys: the field, or the member, with the URL of the certificate (RFC 5280) whose key signed. */
  readonly certificateUrl?: string | undefined;
  /** The hosts from which it is fetched, over https: `api.paypal.com`. `*` is one label of the name: `sns.*.amazonaws.com`. */
  readonly certificateHosts?: readonly string[] | undefined;
};

/** `ecdsa`: over P-256 with SHA-256, as DER (RFC 3279 §2.2.3); `rsa`: RSASSA-PKCS1-v1_5 with SHA-256. */
export type KeyPairAlgorithm = 'ed25519' | 'ecdsa' | 'rsa';

/** A way to verify by a public key. `es256`: ECDSA as JWTs have it, two integers of 32 octets (RFC 7518 §3.4). */
export type KeyAlgorithm = KeyPairAlgorithm | 'es256';

/** A rule, or the function of the configuration that judges in place of one. */
export type JudgingRule = SignatureRule | { readonly kind: 'function' };

/** The algorithm of the public keys by which a sender's signatures may be verified; undefined: it signs by secrets alone. */
export function keyAlgorithmOf(rule: JudgingRule): KeyAlgorithm | undefined {
  if (isKeyPair(rule)) return rule.kind;
  if (rule.kind === 'jwt') return rule.algorithm === 'HS256' ? undefined : jwtKeys[rule.algorithm];
  return rule.kind === 'hmac' && rule.asymmetricPrefix !== undefined ? 'ed25519' : undefined;
}

/** Returns true for a sender that signs by a private key, whose public keys the receiver knows. */
export function isKeyPair<R extends { readonly kind: string }>(
  rule: R,
): rule is Extract<R, { readonly kind: KeyPairAlgorithm }> {
  return keyPairs.some((kind) => kind === rule.kind);
}

export const keyPairs = ['ed25519', 'ecdsa', 'rsa'] as const satisfies readonly KeyPairAlgorithm[];

const jwtKeys = { EdDSA: 'ed25519', ES256: 'es256', RS256: 'rsa' } as const;

/** Returns false for senders that sign by a private key alone, of which the receiver keeps no secret. */
export function usesSecrets(rule: { readonly kind: string; readonly algorithm?: string }): boolean {
  return rule.kind === 'jwt' ? rule.algorithm === 'HS256' : !isKeyPair(rule);
}

export const urlSubject = '{url}';

/** Returns true if a signature covers the URL that the sender called. */
export function signsUrl(rule: JudgingRule): boolean {
  if (rule.kind === 'token' || rule.kind === 'function') return false;
  return rule.kind === 'jwt' ? rule.subject === urlSubject : rule.signed.includes(urlSubject);
}

/**
 * A JSON Web Token (RFC 7519) in the compact form of RFC 7515 §7.1, signed by a secret (`HS256`) or by a key of a JWK set (RFC 7517).
 * `exp` and `nbf` are checked if the token has them. An empty text stands for a value that the declaration must name.
 */
export type JwtRule = {
  readonly kind: 'jwt';
  /** The field that holds the token, in lower case. */
  readonly header: string;
  /** The text before the token, such as `Bearer `; absent: none. */
  readonly prefix?: string | undefined;
  /** The one `alg` that is accepted (RFC 8725 §3.1). */
  readonly algorithm: JwtAlgorithm;
  /** The values of `iss` that are accepted; absent: any. */
  readonly issuer?: string | readonly string[] | undefined;
  /** The values of which `aud` must name one. */
  readonly audience?: string | readonly string[] | undefined;
  /** The value of `sub`; `{url}`: the complete URL that the sender called. */
  readonly subject?: string | undefined;
  /** The value of `email`, which `email_verified` must confirm (OpenID Connect Core 1.0 §5.1). */
  readonly email?: string | undefined;
  /** The claim that holds the SHA-256 of the body. */
  readonly contentDigest?: { readonly claim: string; readonly encoding: Encoding } | undefined;
  /** False: no claim covers the body, so that the token proves who sent, and not the content. */
  readonly signsContent?: boolean | undefined;
  /** Greatest difference of `iat` from now, in seconds; 0: any, and the token needs `exp`. */
  readonly toleranceSeconds: number;
  /** URL of the JWK set in which the sender publishes its keys. */
  readonly keysUrl?: string | undefined;
};

export type JwtAlgorithm = 'HS256' | 'RS256' | 'ES256' | 'EdDSA';

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
  /** Signed by the sender for another receiver: a claim has a value that the rule does not accept. */
  | 'unexpected'
  /** Signed too long ago: sent again, or by a clock that is behind. */
  | 'stale'
  /** Signed too far in the future. */
  | 'ahead';

export type Refused = { readonly ok: false; readonly reason: RefusalReason };

export type RuleVerdict = Believed | Refused;

/** A valid signature: the values that it covers, and its key. */
export type Believed = {
  readonly ok: true;
  /** Unix seconds; null: the rule signs none. */
  readonly timestamp: number | null;
  /** Null: the rule signs none. */
  readonly id: string | null;
  /** Index of the first matching secret; null: a public key. */
  readonly secret: number | null;
};

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

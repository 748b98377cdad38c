/**
 * How a sender signs (§5.6), as data: the three schemes, and what vendors made of them. What verifies by such a rule is
 * verify-by-rule.ts.
 */

export type SignatureRule = HmacRule | TokenRule;

export type Hash = 'sha1' | 'sha256' | 'sha512';

/** An HMAC over the body and what is signed with it. */
export type HmacRule = {
  readonly kind: 'hmac';
  /** The field that holds the signatures, in lower case. */
  readonly header: string;
  readonly hash: Hash;
  readonly encoding: 'hex' | 'base64';
  /** What stands before each signature: `sha256=`, `v1=`, `v1,`; may be empty. What begins otherwise is another version, and ignored. */
  readonly prefix: string;
  /** Between signatures; null: the field holds one. */
  readonly separator: ',' | ' ' | null;
  /**
   * What is signed: text in which `{body}`, `{timestamp}`, `{id}`, `{url}` and `{form}` stand for parts of the message. `{url}` is the whole
   * URL that the sender called; `{form}` the parameters of a form body, sorted by name, each name followed by its value.
   */
  readonly signed: string;
  /** Where the Unix seconds stand that `{timestamp}` is: in a field of their own, or in that of the signatures behind a prefix such as `t=`. */
  readonly timestamp?: { readonly header: string } | { readonly prefix: string } | undefined;
  /** The field that `{id}` is. */
  readonly id?: string | undefined;
  /** What of a secret is the key: its text, or the octets that stand in it as base64 behind `whsec_`. */
  readonly key: 'text' | 'base64';
  /** How far the signed time may be from now (§8), in seconds; 0: any time. Without a timestamp it means nothing. */
  readonly toleranceSeconds: number;
  /** What stands before signatures by Ed25519 over the same text, such as `v1a,`. */
  readonly asymmetricPrefix?: string | undefined;
  /** Where `{form}` is signed: the parameter of `{url}` that holds the SHA-256 of a body that is no form, in hexadecimal. */
  readonly bodyDigestParameter?: string | undefined;
};

/** The field holds a secret itself, which proves who sent the message and nothing of what is in it. */
export type TokenRule = {
  readonly kind: 'token';
  /** In lower case. */
  readonly header: string;
};

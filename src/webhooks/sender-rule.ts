/** A sender of webhooks as data (§4.14): how it signs, where its messages have their id and type, what it asks, and the answers that it wants. */
import type { SignatureRule } from './signature/signature-rule.ts';

export type SenderRule = {
  readonly signature: SignatureRule;
  /**
   * The places of a message's id, which identifies repetitions (§6.3): the first place that holds a text counts. If
   * none does, the digest of the body is used, so that equal octets are one message.
   */
  readonly dedupe: readonly Place[];
  /**
   * The places of its type: the first list whose places all hold a text counts; the texts are joined with full stops.
   */
  readonly type: readonly (readonly Place[])[];
  /** How the sender checks that a receiver listens; most do not. */
  readonly challenge?: Challenge | undefined;
  readonly answers?: Answers | undefined;
  /**
   * The field of a form whose text is the JSON that the places of `dedupe` and `type` mean, and that `message.json()` returns: `payload`.
   */
  readonly jsonInForm?: string | undefined;
  /**
   * Lower-case names of header fields that are stored with the message, in addition to Content-Type and
   * Content-Encoding.
   */
  readonly keep: readonly string[];
};

export type Place =
  /** Lower-case name of a header field. */
  | { readonly header: string }
  | { readonly json: string }
  /** Name in a body of application/x-www-form-urlencoded. */
  | { readonly form: string };

export type Challenge = SignedChallenge | OpenChallenge;

/** A signed message that requests one of its own members back. The response is 200, and the message is not stored. */
export type SignedChallenge = {
  /** A message is a challenge if this member of the JSON body ... */
  readonly json: string;
  /** ... is this text, or this number. */
  readonly is: string;
  /** The response is a JSON object with one member of this name; absent: the value alone, as text. */
  readonly answer?: string | undefined;
  /** The member of the message whose value is returned. */
  readonly echo: string;
  readonly proof?: Proof | undefined;
};

/** A request without a signature that asks whether a receiver listens. The response is 200 with what it asks for. */
export type OpenChallenge = {
  /** `query-echo` and `header-echo` want a value back; `hmac` wants the proof that the receiver knows the secret. */
  readonly kind: 'query-echo' | 'header-echo' | 'hmac';
  /** Default GET. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | undefined;
  /** The parameter of the URL, ... */
  readonly query?: string | undefined;
  /** ... or else the field, in lower case, that has the value; neither, of HEAD alone: the response is empty. */
  readonly header?: string | undefined;
  /** The response is a JSON object with the value under this name; absent: the value alone, as text, unless there is a proof. */
  readonly answer?: string | undefined;
  /** Of `hmac`. */
  readonly proof?: Proof | undefined;
  /**
   * The value of `header` is the secret by which the sender will sign, and is returned in the same field. It becomes the secret of the sender
   * while there is none; a request with another one is refused as a wrong signature is.
   */
  readonly setsSecret?: boolean | undefined;
  /** The parameter of the URL that must hold the token of the challenge, such as Meta's `hub.verify_token`; otherwise the response is 403. */
  readonly token?: string | undefined;
};

/** A further member of the JSON object: the HMAC-SHA256 of the returned value with the current secret. */
export type Proof = {
  readonly name: string;
  readonly encoding: 'hex' | 'base64';
  readonly prefix: string;
};

/** Statuses that a sender wants in place of 204 and 400. */
export type Answers = {
  /** Of a message that is stored, or was before. */
  readonly accepted?: 200 | 204 | undefined;
  /** Of a message whose signature is invalid or stale. */
  readonly refused?: 400 | 401 | 403 | 406 | undefined;
};

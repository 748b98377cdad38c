/**
 * What there is to know of a sender of webhooks before anything of it is believed (§4.14, §5.6, §6): how it signs, and where the id and the
 * type of a message stand. Data alone: a sender of another kind is another value, not another program.
 */
import type { SignatureRule } from '../signature/signature-rule.ts';

export type SenderRule = {
  readonly signature: SignatureRule;
  /**
   * Where the id of a message stands, by which a repetition is known (§6.3): the first of these places that holds a text. Where none does,
   * the digest of the body stands for it, so that the same octets are one message.
   */
  readonly dedupe: readonly Place[];
  /** Where its type stands: the first list of which each place holds a text; these texts with full stops between. */
  readonly type: readonly (readonly Place[])[];
  /** How the sender finds out whether somebody listens; most do not ask. */
  readonly challenge?: Challenge | undefined;
  /** Header fields that are kept with the message besides Content-Type and Content-Encoding, by name in lower case. */
  readonly keep: readonly string[];
};

/** Where a text stands in a message. */
export type Place =
  /** Name of a header field in lower case. */
  | { readonly header: string }
  /** JSON Pointer (RFC 6901) into a JSON body. */
  | { readonly json: string }
  /** Name in a body of application/x-www-form-urlencoded. */
  | { readonly form: string };

/** A signed message that asks for one of its own members back instead of telling anything. It is answered 200, and not kept. */
export type Challenge = {
  /** It is one where this member of the JSON body ... */
  readonly json: string;
  /** ... is this text. */
  readonly is: string;
  /** The answer is a JSON object with one member: this name, ... */
  readonly answer: string;
  /** ... and the member that stands here. */
  readonly echo: string;
};

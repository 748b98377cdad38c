/** Senders of webhooks (§4.14): their declaration and its checked form. */
import type { Scheme } from '../model/endpoint.ts';
import type { Resources } from '../model/logic/collection-calls.ts';
import type { Logic } from '../model/logic/logic.ts';
import type { JsonOptions } from '../webhooks/exact-json.ts';
import type { PresetName } from '../webhooks/presets.ts';
import type { SenderRule } from '../webhooks/sender-rule.ts';
import type { PublicJwk } from '../webhooks/signature/key-pair.ts';
import type {
  HmacRule,
  JudgingRule,
  JwtRule,
  KeyPairRule,
  TokenRule,
} from '../webhooks/signature/signature-rule.ts';

/** What a user writes under `senders`, by the name in the path: `{base}/webhooks/billing`. */
/** @template R the calls on the collections; never: not known */
export type SenderDeclaration<R = never> = {
  readonly description?: string;
  /** A preset: `stripe`, `github`, `standard`... The members below replace single parts of it. */
  readonly preset?: PresetName;
  /** Parts of the preset's signature, or a complete one. */
  readonly signature?: Partial<HmacRule> | Partial<KeyPairRule> | Partial<JwtRule> | TokenRule;
  /** Judges its messages where no rule does; takes the place of a signature. */
  readonly verify?: Verify;
  readonly dedupe?: SenderRule['dedupe'];
  readonly type?: SenderRule['type'];
  readonly challenge?: SenderRule['challenge'];
  /** Statuses that the sender wants in place of 204 and 400. */
  readonly answers?: SenderRule['answers'];
  /** The field of a form that holds the JSON of a message, such as `payload`. */
  readonly jsonInForm?: string;
  readonly keep?: SenderRule['keep'];
  /**
   * Environment variable with its secrets, separated by commas. Default `BILLING_WEBHOOK_SECRET` for `billing`. If it is not set, Comity
   * creates a secret at the first start and prints it once; `comity senders rotate-secret` rotates it.
   */
  readonly secretVariable?: string;
  /**
   * Public keys of a sender that signs by a key pair, or beside its secrets (`v1a`). Ed25519: `whpk_` and base64, or 64 hexadecimal digits;
   * ECDSA and RSA: base64 or PEM of a SubjectPublicKeyInfo. Any of them: a JWK (RFC 7517).
   */
  readonly publicKeys?: readonly (string | PublicJwk)[];
  /** URL of a JWK set with such keys, fetched through the egress guard. Default: that of the preset, if it has one. */
  readonly keysUrl?: string;
  /** Processes its messages. Without `handler` and `forward`, messages wait in the inbox to be marked. */
  readonly handler?: Handler<R>;
  /** Forwards its messages with a new signature. */
  readonly forward?: ForwardDeclaration;
  /** Seconds from each failed attempt to process a message to the next; after the last one it is `failed`. */
  readonly schedule?: readonly number[];
  /** Messages processed at once; 1 keeps their order. */
  readonly inFlightMax?: number;
};

export type ForwardDeclaration = {
  /** http or https; `COMITY_EGRESS_ALLOW` must allow a private address. */
  readonly url: string;
  /** Default `standard`. */
  readonly scheme?: Scheme;
  /** Default `BILLING_FORWARD_SECRET` for `billing`; otherwise like `secretVariable`. */
  readonly secretVariable?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

export type DeclaredSender = {
  readonly name: string;
  readonly description: string;
  readonly preset: PresetName | null;
  readonly rule: DeclaredRule;
  readonly secretVariable: string;
  /** The variable that holds the token of its challenge, `BILLING_CHALLENGE_TOKEN`; undefined: no challenge has one. */
  readonly challengeVariable?: string | undefined;
  readonly publicKeys: readonly (string | PublicJwk)[];
  readonly keysUrl: URL | undefined;
  readonly handOn: HandOnTo;
  readonly schedule: readonly number[];
  /** Undefined: the setting applies. */
  readonly inFlightMax: number | undefined;
};

/** The rule of a sender; `function`: `verify` of its declaration judges its messages. */
type DeclaredRule = Omit<SenderRule, 'signature'> & {
  readonly signature: JudgingRule;
};

export type HandOnTo =
  /** The function runs on another thread, which imports the configuration again. */
  | { readonly kind: 'handler' }
  | {
      readonly kind: 'forward';
      readonly url: URL;
      readonly scheme: Scheme;
      readonly secretVariable: string;
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'inbox' };

const minuteS = 60;
const hourS = 3600;

/** Nine attempts in 27 h 37 min 35 s, so that people can correct an overnight fault before the last. */
export const handOnScheduleDefault: readonly number[] = [
  ...[5, 30, 2 * minuteS, 5 * minuteS, 30 * minuteS],
  ...[2 * hourS, 5 * hourS, 20 * hourS],
];

// The sources of messages in the inbox (`sender` of a received message): senders of webhooks, and functions of the application that get
// messages of the program itself, which are subscribers (an event each) and jobs (a scheduled run each).

export type Source = {
  /** `billing` of a sender, `subscriber:reopen`, `job:closeSolved`; it contains no slash and nothing that JSON escapes. */
  readonly name: string;
  readonly handOn: HandOnTo | OwnFunction;
  /** Seconds from each failed attempt to the next. */
  readonly schedule: readonly number[];
  /** Undefined: the setting applies. */
  readonly inFlightMax: number | undefined;
  /** Of a sender. */
  readonly rule?: DeclaredRule;
};

/** A subscriber or a job, which runs on the threads of handlers. */
type OwnFunction = {
  readonly kind: 'subscriber' | 'job';
  /** Its name in the configuration. */
  readonly of: string;
  /** The time for one attempt; undefined: the setting for handlers applies. */
  readonly timeoutMs: number | undefined;
};

export function subscriberSource(name: string): string {
  return `subscriber:${name}`;
}

export function jobSource(name: string): string {
  return `job:${name}`;
}

// The interface of functions that judge messages (§4.14.1). They run on the threads of handlers, before the message is parsed or stored.

/**
 * @returns whether the message is of the sender. What is not is refused as a wrong signature is, and so is a message for which this throws, with
 * a line in the log
 */
export type Verify = (received: UnjudgedMessage) => boolean | Promise<boolean>;

export type UnjudgedMessage = {
  /** The content as it came. */
  readonly body: Uint8Array;
  readonly headers: Headers;
  /** The complete URL as the sender called it: that of `COMITY_PUBLIC_URL` with the path and query of the request. */
  readonly url: string;
  /** Those in the sender's `secretVariable`, the newest first as written there; empty if it is not set. */
  readonly secrets: readonly string[];
};

// The interface of handlers of received messages (§4.14.5). A handler runs on a thread of its own, outside of the request. Its writes are
// collected until it returns, and committed in one transaction with the mark that the message is processed: all or nothing, and exactly once.

export type Handler<R = Resources> = (handling: Handling<R>) => void | Promise<void>;

/** The argument of a handler, which acts as an administrator: the message, and the argument of every function of an application. */
export type Handling<R = Resources> = Logic<R> & {
  readonly message: ReceivedMessage;
  /** Aborted when the time for this attempt is over; pass it on to long operations. */
  readonly signal: AbortSignal;
};

export type ReceivedMessage = {
  /** `rec_...` */
  readonly id: string;
  readonly sender: string;
  readonly dedupeKey: string;
  readonly type: string | null;
  readonly receivedAt: string;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  readonly contentType: string | null;
  /** Header fields that `keep` of the sender lists, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as received. */
  readonly body: Uint8Array;
  /**
   * The body as JSON, or the JSON in the form field that the sender names (`jsonInForm`). An integer beyond 2^53 is returned as asked, and
   * never rounded. @throws UnprocessableMessage for anything else, because a retry would not help
   */
  json(options?: JsonOptions): unknown;
  /** The body as UTF-8. @throws UnprocessableMessage for anything else */
  text(): string;
  /** The body as application/x-www-form-urlencoded. @throws UnprocessableMessage for anything but UTF-8 */
  form(): URLSearchParams;
};

/** The message can never be processed: it fails at once, without further attempts. */
export class UnprocessableMessage extends Error {
  override readonly name = 'UnprocessableMessage';
}

/** A call that would have been refused with an error response (§7). */
export class ResourceRefused extends Error {
  override readonly name = 'ResourceRefused';
  /** A code of the error registry: `not_found`, `validation_failed`, `unique_taken`... */
  readonly code: string;
  /** The status of that response. */
  readonly status: number;
  /** The member that `refuse` of a hook named, as a JSON Pointer. */
  readonly pointer: string | undefined;

  constructor(code: string, message: string, status: number, pointer?: string) {
    super(message);
    this.code = code;
    this.status = status;
    this.pointer = pointer;
  }
}

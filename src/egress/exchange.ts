/**
 * An outgoing request and its outcome (§6, §8), as values. Any status is an answer; a failure names its stage, so that a log distinguishes a
 * name that does not resolve from a server that hangs.
 */

export type ExchangeCall = {
  readonly url: URL;
  readonly method: 'POST';
  /** Names and values in turn. */
  readonly fields: readonly string[];
  readonly body: Uint8Array | string;
  /** In milliseconds, from the lookup to the header section of the answer. */
  readonly timeoutMs: number;
  /** The owner of connections to the origin that no other share uses, such as an endpoint. Default: one for all without. */
  readonly share?: string;
  /** Aborts when the program stops. */
  readonly signal?: AbortSignal;
};

export type ExchangeFailure =
  /** The guard permitted no address, or the port is not permitted: nothing was sent. */
  | 'refused'
  | 'dns'
  /** No connection: refused, unreachable, or reset before any data. */
  | 'connect'
  /** The certificate is not valid for the name, or the server does not use TLS. */
  | 'tls'
  /** Timeout before the header section. */
  | 'timeout'
  /** The connection broke before the header section. */
  | 'reset'
  /** The answer is not HTTP, or its header section is over the limit. */
  | 'protocol'
  /** The program stopped; says nothing about the server. */
  | 'aborted';

/** Milliseconds; null for a stage that did not happen, as on a kept connection. */
export type ExchangeTiming = {
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
  readonly tlsMs: number | null;
  /** From the written request to the first octet of the answer. */
  readonly firstByteMs: number | null;
  /** From the call to the header section, or to the failure. */
  readonly totalMs: number;
};

export type ExchangeOutcome =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** Lower-case names and values, limited in number and length. */
      readonly fields: readonly (readonly [name: string, value: string])[];
      /** The beginning of the content, decoded as UTF-8, limited. */
      readonly snippet: string;
      /** Why the content was not read to its end; null: it was. */
      readonly cut: 'long' | 'slow' | 'broken' | null;
      readonly protocol: 'http/1.1' | 'h2';
      readonly reused: boolean;
      readonly address: string | null;
      readonly timing: ExchangeTiming;
    }
  | {
      readonly kind: 'failed';
      readonly failure: ExchangeFailure;
      /** For the log of the endpoint's owner: it contains no address that the guard refused. */
      readonly message: string;
      readonly timing: ExchangeTiming;
    };

/** Calls back once, maybe before it returns: a promise for each delivery would cost more than the callback. */
export type Exchange = (call: ExchangeCall, done: (outcome: ExchangeOutcome) => void) => void;

export function exchanged(exchange: Exchange, call: ExchangeCall): Promise<ExchangeOutcome> {
  return new Promise((resolve) => exchange(call, resolve));
}

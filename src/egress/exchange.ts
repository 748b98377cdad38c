/**
 * One request to a server outside and what came of it (§6, §8), as values. An answer of any status is an answer; a failure says how far it
 * came, so that a log tells a name that does not resolve from a server that hangs.
 */

export type ExchangeCall = {
  readonly url: URL;
  readonly method: 'POST';
  /** Names and values in turn. */
  readonly fields: readonly string[];
  readonly body: Uint8Array | string;
  /** For everything, from the name to the header section of the answer. Milliseconds. */
  readonly timeoutMs: number;
  /** Who the request is for, such as an endpoint: it has connections to the origin that no other share takes. Default: one for all without. */
  readonly share?: string;
  /** Where the program stops. */
  readonly signal?: AbortSignal;
};

/** How far it came without an answer. */
export type ExchangeFailure =
  /** The guard let no address through, or the port is not permitted: nothing was sent. */
  | 'refused'
  /** The name did not resolve. */
  | 'dns'
  /** No connection: refused, unreachable, or reset before anything was said. */
  | 'connect'
  /** The certificate is not good for the name, or no TLS was spoken. */
  | 'tls'
  /** The time was over before the header section was there. */
  | 'timeout'
  /** The connection broke before the header section was there. */
  | 'reset'
  /** What came was not HTTP, or its header section is over the limit. */
  | 'protocol'
  /** The program stopped meanwhile; says nothing of the server. */
  | 'aborted';

/** Milliseconds; null where the part did not happen, as on a connection that stood already. */
export type ExchangeTiming = {
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
  readonly tlsMs: number | null;
  /** From the request written to the first octet of the answer. */
  readonly firstByteMs: number | null;
  /** From the call to the header section, or to the failure. */
  readonly totalMs: number;
};

export type ExchangeOutcome =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** Names in lower case and values, bounded in number and length. */
      readonly fields: readonly (readonly [name: string, value: string])[];
      /** The beginning of the content, decoded as UTF-8, bounded. */
      readonly snippet: string;
      /** Why the content was not read to its end; null: it was. */
      readonly cut: 'long' | 'slow' | 'broken' | null;
      readonly protocol: 'http/1.1' | 'h2';
      /** Whether the connection stood already. */
      readonly reused: boolean;
      readonly address: string | null;
      readonly timing: ExchangeTiming;
    }
  | {
      readonly kind: 'failed';
      readonly failure: ExchangeFailure;
      /** For the log that the owner of an endpoint reads: no address that the guard refused stands in it. */
      readonly message: string;
      readonly timing: ExchangeTiming;
    };

export type Exchange = (call: ExchangeCall) => Promise<ExchangeOutcome>;

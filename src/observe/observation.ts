/**
 * Everything that Comity reports, as one closed union. Features emit observations through the `Observe` function that
 * they are given; only the sinks in this folder print or count. No observation carries a credential, a cookie, a mail
 * address, a query string or content, except for `mail-shown`, which exists in development only.
 */

/** The code of an answer that another server gave to a forwarded request. */
export const forwardedCode = 'forwarded';

/**
 * Codes of 5xx that are no failures of the program: a client asked for what HTTP has and Comity does not, or the destination of a tunnel
 * or of a forwarded request failed, which has a line of its own.
 */
export const othersFailures: ReadonlySet<string> = new Set([
  'method_unknown',
  'transfer_coding_unknown',
  'protocol_unknown',
  'version_unsupported',
  'destination_failed',
  'destination_timeout',
  forwardedCode,
]);

export type Observation =
  | { readonly kind: 'listening'; readonly url: string }
  | { readonly kind: 'draining'; readonly reason: string; readonly delayMs: number }
  | { readonly kind: 'stopped'; readonly drainedMs: number }
  | {
      readonly kind: 'answered';
      /** Its `id` and `peer` are computed on first use, so a log without lines for responses never computes them. */
      readonly exchange: {
        readonly id: string;
        readonly peer: string;
        /** For the log of a developer alone: without its query, which may hold a credential. */
        readonly path?: string;
        readonly caller?: string | undefined;
        readonly trace?: string | undefined;
        readonly traceId?: string | undefined;
      };
      readonly method: string;
      /** The route's pattern, never the path: `/api/v1/products/{id}`. */
      readonly route: string;
      readonly status: number;
      readonly code: string | undefined;
      readonly durationMs: number;
    }
  /** A client sent something that is not an HTTP request. */
  | { readonly kind: 'client-error'; readonly code: string; readonly status: number; readonly peer: string }
  /** Comity closed a connection above the limit. */
  | { readonly kind: 'connection-refused'; readonly peer: string }
  /** The system could not accept a connection, for example for lack of memory or descriptors. */
  | { readonly kind: 'accept-failed'; readonly why: string }
  | {
      readonly kind: 'uncaught';
      readonly origin: 'uncaughtException' | 'unhandledRejection';
      readonly error: unknown;
    }
  /** One of several workers ended by itself; a successor is started. */
  | { readonly kind: 'worker-ended'; readonly worker: number; readonly error: unknown }
  /** The reader of an event stream was too slow for its buffer, or read nothing for `answerStallTimeoutMs`. */
  | {
      readonly kind: 'stream-cut';
      readonly peer: string;
      readonly why: 'full' | 'stalled';
      readonly waitingBytes: number;
    }
  /** One synchronous stretch blocked the event loop for longer than `loopHeldMs`; with its request, if it had one. */
  | {
      readonly kind: 'loop-held';
      readonly id: string | undefined;
      readonly method: string | undefined;
      readonly route: string | undefined;
      readonly heldMs: number;
      /** Processor time of the thread within `heldMs`. The rest went to other threads and programs. */
      readonly busyMs: number;
    }
  | {
      readonly kind: 'failed';
      readonly id: string;
      readonly traceId?: string | undefined;
      readonly error: unknown;
    }
  | {
      readonly kind: 'store-opened';
      readonly engine: string;
      readonly tables: number;
      readonly durationMs: number;
    }
  | { readonly kind: 'store-migrated'; readonly what: string; readonly durationMs: number }
  | { readonly kind: 'store-failed'; readonly what: string; readonly error: unknown }
  /** Pending migrations of a collection were made. */
  | {
      readonly kind: 'documents-migrated';
      readonly collection: string;
      readonly migrations: readonly string[];
      readonly documents: number;
      readonly changed: number;
      readonly durationMs: number;
      readonly isAgain: boolean;
      readonly isRespelling?: boolean;
    }
  /** Documents may not fit the configuration, and Comity serves nevertheless; the sentence names a collection and what to do. */
  | { readonly kind: 'documents-unfit'; readonly sentence: string }
  /** A later configuration of other processes extends the declaration of this one. */
  | { readonly kind: 'documents-extended'; readonly collection: string }
  | {
      readonly kind: 'backup-made';
      /** Name in the folder of backups. */
      readonly file: string;
      readonly bytes: number;
      readonly durationMs: number;
    }
  | { readonly kind: 'backup-failed'; readonly file: string; readonly error: unknown }
  /** The bucket of files failed, or refused a request; attempts that might have helped were made. */
  | { readonly kind: 'bucket-failed'; readonly what: string; readonly error: unknown }
  /** The bucket of files kept or gave other octets than those of the file, which were not passed on. */
  | { readonly kind: 'bucket-differs'; readonly what: string; readonly error: unknown }
  | { readonly kind: 'units-committed'; readonly units: number; readonly durationMs: number }
  /** A hook failed in a write of another function, which may have caught the error. */
  | { readonly kind: 'nested-hook-failed'; readonly error: unknown }
  /** An error of an application's function that no code caught, after the function was over (decision 0073). */
  | {
      readonly kind: 'function-escaped';
      readonly named: string;
      readonly origin: 'uncaughtException' | 'unhandledRejection';
      readonly error: unknown;
    }
  /** `afterRead` of a collection failed for an event, which was sent without the members of its resource. */
  | { readonly kind: 'hook-failed'; readonly error: unknown }
  | { readonly kind: 'operation-failed'; readonly operation: string; readonly error: unknown }
  | { readonly kind: 'rows-purged'; readonly table: string; readonly rows: number }
  /** The way in which this process notices changes by other processes on the same store. */
  | { readonly kind: 'store-following'; readonly how: 'notify' | 'poll' }
  /**
   * Another process on the store has a different configuration; `what` is the difference, as in `other collections`.
   */
  | { readonly kind: 'processes-differ'; readonly what: string }
  /** The clock of another process on the store is ahead of this one's, or behind by a negative time; 0: no longer. */
  | { readonly kind: 'clocks-differ'; readonly otherAheadMs: number }
  | AccountObservation
  | WebhookObservation
  | ReceivedObservation
  | ConnectionObservation;

/** Observations of accounts, their credentials and the services behind them (§5). */
type AccountObservation =
  /** Every password check, and every login by a provider that opened a session. */
  | { readonly kind: 'login-judged'; readonly outcome: 'succeeded' | 'failed' | 'limited' }
  /** A refresh token was used a second time; Comity ended its session `ses_...`. */
  | { readonly kind: 'session-reused'; readonly session: string }
  /** Comity did not hash a password because the queue for hashing was full. */
  | { readonly kind: 'hashing-refused'; readonly waiting: number }
  /** `mail`: its id. */
  | { readonly kind: 'mail-sent'; readonly mail: string; readonly attempts: number }
  | {
      readonly kind: 'mail-delayed';
      readonly mail: string;
      readonly attempts: number;
      readonly error: unknown;
    }
  | {
      readonly kind: 'mail-given-up';
      /** Undefined: it was not kept. */
      readonly mail: string | undefined;
      /** The server refused it for good, all attempts failed, or too many were requested. */
      readonly reason: 'refused' | 'attempts' | 'full';
      readonly attempts: number;
      readonly error: unknown;
    }
  /** In development without a mail server: the mail, which no one else gets. */
  | {
      readonly kind: 'mail-shown';
      readonly mail: string;
      readonly to: string;
      readonly subject: string;
      readonly text: string;
    }
  | { readonly kind: 'signing-key-made'; readonly kid: string; readonly algorithm: string }
  | { readonly kind: 'signing-key-retired'; readonly kid: string }
  /** Comity generated a key that encrypts secrets, because no setting gives one. */
  | { readonly kind: 'secret-key-made'; readonly file: string }
  /** Comity encrypted secrets that were stored in plain text or under another key; `key` is the id of the new key. */
  | { readonly kind: 'secrets-encrypted'; readonly rows: number; readonly key: string }
  /** The keys or the metadata of a trusted issuer could not be fetched; once per attempt, not per token. */
  | { readonly kind: 'issuer-failed'; readonly issuer: string; readonly error: unknown }
  /** An OpenID provider could not be reached or sent an unusable response; `provider` as in the path. */
  | { readonly kind: 'provider-failed'; readonly provider: string; readonly error: unknown }
  /** Entries missing in the audit trail: the queue was full, or the store was unavailable when Comity stopped. */
  | { readonly kind: 'audit-dropped'; readonly facts: number };

/** Observations of sending webhooks (§6). `endpoint` is an id; no observation names a URL, which may hold a secret. */
type WebhookObservation =
  /** A restored copy sends nothing (hold/hold.ts). */
  | { readonly kind: 'work-held'; readonly since: string; readonly from: string }
  | { readonly kind: 'work-released' }
  /** `failure`: the kind of failure without a status, such as `timeout`; undefined if the receiver responded. */
  | {
      readonly kind: 'delivery-attempted';
      readonly endpoint: string;
      readonly delivery: string;
      readonly outcome: 'delivered' | 'failed';
      readonly status: number | undefined;
      readonly failure: string | undefined;
      readonly durationMs: number;
    }
  /** The circuit breaker of an endpoint opened until the time (ms since the epoch). */
  | { readonly kind: 'endpoint-left-alone'; readonly endpoint: string; readonly until: number }
  | { readonly kind: 'endpoint-answers-again'; readonly endpoint: string }
  /** Comity notified the owner. */
  | { readonly kind: 'endpoint-failing'; readonly endpoint: string }
  | { readonly kind: 'endpoint-disabled'; readonly endpoint: string; readonly reason: 'gone' | 'failing' }
  /** The egress guard refused a destination. `why` may name a private network, so it is for operators only. */
  | {
      readonly kind: 'egress-refused';
      readonly hostname: string;
      readonly port: number;
      readonly reason: 'address' | 'port' | 'own-listener';
      readonly why: string;
    }
  /** The number of lanes of endpoints that this process sends for from now on. */
  | { readonly kind: 'lanes-held'; readonly lanes: number; readonly of: number }
  /** Sending failed inside Comity; it retries. */
  | { readonly kind: 'sending-failed'; readonly what: string; readonly error: unknown };

/** Observations of receiving webhooks (§4.14). No observation holds a body, a signature or a secret. */
export type ReceivedObservation =
  /** A message arrived for a declared sender; `reason`: why it was refused. */
  | {
      readonly kind: 'webhook-received';
      readonly sender: string;
      readonly outcome: 'accepted' | 'duplicate' | 'challenge' | 'refused';
      readonly reason: string | undefined;
    }
  /** An attempt to hand on a message; `lagMs` since its receipt or replay. */
  | {
      readonly kind: 'received-handed-on';
      readonly sender: string;
      readonly message: string;
      readonly outcome: 'processed' | 'failed';
      readonly failure: string | undefined;
      /** True if another attempt follows. */
      readonly again: boolean;
      readonly lagMs: number;
      readonly durationMs: number;
    }
  /**
   * A subscriber, a job or the handler of a sender failed at a message; `sender` as in the inbox. The words of the error
   * are the application's own.
   */
  | {
      readonly kind: 'function-failed';
      readonly sender: string;
      readonly message: string;
      readonly attempt: number;
      /** Kind of the failure, as in the log of attempts, and its words, with the place in the configuration. */
      readonly failure: string;
      readonly reason: string | null;
      /** Time of the next attempt, ISO 8601; null: none follows. */
      readonly nextAt: string | null;
      /** Frames of the error's stack. */
      readonly frames: string | undefined;
    }
  /** Handing on messages of a sender failed so often in a row that they wait until the time (ms since the epoch). */
  | { readonly kind: 'sender-paused'; readonly sender: string; readonly until: number }
  /**
   * Comity ended a handler thread for the given reason; it starts another when needed. `senders`: those of the message
   * that was the cause, or of all that may have been.
   */
  | {
      readonly kind: 'handler-thread-ended';
      readonly reason: string;
      readonly senders: readonly string[];
      readonly messages: number;
    }
  /** The next run of a job was further away than its times allow, because a clock was ahead; ISO 8601. */
  | { readonly kind: 'job-rescheduled'; readonly job: string; readonly from: string; readonly to: string }
  /** Due work waited for times that a clock had set which was ahead, by up to `aheadMs`. `queue`: an endpoint, `sender/NAME` or `mails`. */
  | {
      readonly kind: 'work-rescheduled';
      readonly queue: string;
      readonly rows: number;
      readonly aheadMs: number;
    }
  /** Receiving failed inside Comity; it continues. */
  | { readonly kind: 'receiving-failed'; readonly what: string; readonly error: unknown };

/** Observations of connections (§4.10, §4.13). Hosts and ports are those that a client requested. */
type ConnectionObservation =
  /** The memory budget had no room for the octets; once per second and use. `heldBytes`: octets held at that time. */
  | {
      readonly kind: 'memory-refused';
      readonly use: string;
      readonly bytes: number;
      readonly heldBytes: number;
      readonly bytesMax: number;
      /** Refusals since the last such observation, including this one. */
      readonly refusals: number;
    }
  /** A certificate was read, at the start or because its files changed; `notAfter` is an ISO 8601 time. */
  | { readonly kind: 'certificate-loaded'; readonly subject: string; readonly notAfter: string }
  /** Changed files of the certificate cannot be used; Comity keeps the previous certificate. */
  | { readonly kind: 'certificate-failed'; readonly error: unknown }
  | { readonly kind: 'http2-cut'; readonly peer: string; readonly why: string }
  /** A WebSocket ended; `code` as in RFC 6455 §7.4. */
  | {
      readonly kind: 'websocket-closed';
      readonly peer: string;
      readonly code: number;
      readonly by: 'client' | 'server' | 'connection';
      readonly durationMs: number;
    }
  | {
      readonly kind: 'tunnel-refused';
      readonly peer: string;
      /** Id of the principal; undefined for an anonymous client. */
      readonly principal: string | undefined;
      readonly how: TunnelKind;
      readonly host: string;
      readonly port: number;
      readonly status: number;
      readonly code: string;
      /** For operators: the network of an address, the list without the host, the failure of a connection. */
      readonly why: string;
    }
  /** Comity opened a tunnel that a list of hosts in the mode `report` would refuse. */
  | {
      readonly kind: 'tunnel-reported';
      readonly principal: string;
      readonly how: TunnelKind;
      readonly host: string;
      readonly port: number;
      readonly why: string;
    }
  | {
      readonly kind: 'tunnel-opened';
      readonly peer: string;
      readonly principal: string;
      readonly how: TunnelKind;
      readonly host: string;
      readonly port: number;
      readonly address: string;
      readonly dnsMs: number | null;
      readonly connectMs: number | null;
    }
  | {
      readonly kind: 'tunnel-closed';
      readonly principal: string;
      readonly how: TunnelKind;
      readonly host: string;
      readonly port: number;
      readonly address: string;
      /** From the client to the destination; `receivedBytes` in the other direction. */
      readonly sentBytes: number;
      readonly receivedBytes: number;
      readonly durationMs: number;
      readonly why: TunnelEnd;
    }
  /** A connection failed inside Comity; it continues. */
  | { readonly kind: 'connection-failed'; readonly what: string; readonly error: unknown };

export type TunnelKind = 'connect' | 'udp' | 'forward';

export type TunnelEnd =
  | 'ended'
  | 'client-reset'
  | 'destination-reset'
  | 'idle'
  /** The principal used up its octets for the day. */
  | 'bytes'
  /** The credential that opened the tunnel ended. */
  | 'revoked'
  | 'drained';

export type Observe = (observation: Observation) => void;

/** Passes each observation to several sinks in order, synchronously. Sinks must not throw. */
export function fanOut(...sinks: readonly Observe[]): Observe {
  const [first, second] = sinks;
  // Comity has two sinks, log and metrics: worth a path without a loop.
  if (sinks.length === 2 && first !== undefined && second !== undefined) {
    return (observation) => {
      first(observation);
      second(observation);
    };
  }
  return (observation) => {
    for (const sink of sinks) sink(observation);
  };
}

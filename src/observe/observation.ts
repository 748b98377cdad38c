/**
 * Everything the program can report, as one closed union (style habit 6.16). Rooms emit facts through
 * an `Observe` function they are given; only the sinks beside this file print or count. No fact
 * carries a credential, a cookie, a mail address, a query string or content.
 */

export type Observation =
  | { readonly kind: 'listening'; readonly url: string }
  | { readonly kind: 'draining'; readonly reason: string }
  | { readonly kind: 'stopped'; readonly drainedMs: number }
  | {
      readonly kind: 'answered';
      /** Whose id and peer are made only when they are read: a log that is silent about answers never does. */
      readonly exchange: { readonly id: string; readonly peer: string };
      readonly method: string;
      /** The route's pattern, never the path: `/api/v1/products/{id}`. */
      readonly route: string;
      readonly status: number;
      readonly code: string | undefined;
      readonly durationMs: number;
    }
  /** What came was not an HTTP request that could be handed on. */
  | { readonly kind: 'client-error'; readonly code: string; readonly status: number; readonly peer: string }
  /** A connection over the limit was closed. */
  | { readonly kind: 'connection-refused'; readonly peer: string }
  /** The system could not accept a connection, for example because memory or descriptors are used up. */
  | { readonly kind: 'accept-failed'; readonly why: string }
  /** An error that no code caught: the program drains and exits. */
  | {
      readonly kind: 'uncaught';
      readonly origin: 'uncaughtException' | 'unhandledRejection';
      readonly error: unknown;
    }
  /** A reader of an event stream was too slow for its buffer, or took nothing for `answerStallTimeoutMs`. */
  | {
      readonly kind: 'stream-cut';
      readonly peer: string;
      readonly why: 'full' | 'stalled';
      readonly waitingBytes: number;
    }
  /** One synchronous stretch held the event loop for longer than `loopHeldMs`; for which request, where it was for one. */
  | {
      readonly kind: 'loop-held';
      readonly id: string | undefined;
      readonly method: string | undefined;
      /** The route's pattern. */
      readonly route: string | undefined;
      readonly heldMs: number;
      /** Of that, processor time of the thread: the program's own work. The rest is other programs'. */
      readonly busyMs: number;
    }
  | { readonly kind: 'failed'; readonly id: string; readonly error: unknown }
  | {
      readonly kind: 'store-opened';
      readonly engine: string;
      readonly tables: number;
      readonly durationMs: number;
    }
  | { readonly kind: 'store-migrated'; readonly what: string; readonly durationMs: number }
  | { readonly kind: 'store-failed'; readonly what: string; readonly error: unknown }
  | { readonly kind: 'units-committed'; readonly units: number; readonly durationMs: number }
  | { readonly kind: 'operation-failed'; readonly operation: string; readonly error: unknown }
  | { readonly kind: 'rows-purged'; readonly table: string; readonly rows: number }
  /** How changes by other processes on the same store arrive from here on. */
  | { readonly kind: 'store-following'; readonly how: 'notify' | 'poll' }
  /** Another process on the same store was started with something else: `what` names it, as in `other collections`. */
  | { readonly kind: 'processes-differ'; readonly what: string }
  | AccountObservation
  | WebhookObservation
  | ReceivedObservation
  | ConnectionObservation;

/** What accounts, their credentials and the services that they need can report (§5). */
export type AccountObservation =
  /** Every password that was judged, and every sign-in by a provider that opened a session. */
  | { readonly kind: 'login-judged'; readonly outcome: 'succeeded' | 'failed' | 'limited' }
  /** A refresh token came a second time; its session `ses_...` was ended. */
  | { readonly kind: 'session-reused'; readonly session: string }
  /** A password was not hashed, because as many as may wait did. */
  | { readonly kind: 'hashing-refused'; readonly waiting: number }
  /** The mail server took a mail at this attempt. */
  | { readonly kind: 'mail-sent'; readonly attempts: number }
  /** An attempt to send a mail failed, and another will follow. */
  | { readonly kind: 'mail-delayed'; readonly attempts: number; readonly error: unknown }
  | {
      readonly kind: 'mail-given-up';
      /** The server refused it for good, all attempts failed, as many as may wait did, or the program stopped. */
      readonly reason: 'refused' | 'attempts' | 'full' | 'closed';
      readonly attempts: number;
      readonly error: unknown;
    }
  | { readonly kind: 'signing-key-made'; readonly kid: string; readonly algorithm: string }
  | { readonly kind: 'signing-key-retired'; readonly kid: string }
  /** A key that encrypts secrets was made, because no setting gives one. */
  | { readonly kind: 'secret-key-made'; readonly file: string }
  /** Secrets that were stored plain, or under another key, were encrypted; `key` is the id of the key. */
  | { readonly kind: 'secrets-encrypted'; readonly rows: number; readonly key: string }
  /** The keys or the metadata of a trusted issuer could not be had; once for each attempt, not for each token. */
  | { readonly kind: 'issuer-failed'; readonly issuer: string; readonly error: unknown }
  /** An OpenID provider could not be reached, or its answer not be used; `provider` as in the path. */
  | { readonly kind: 'provider-failed'; readonly provider: string; readonly error: unknown }
  /** Facts that are missing in the audit trail: more waited than may, or the store was away when the program stopped. */
  | { readonly kind: 'audit-dropped'; readonly facts: number };

/** What sending webhooks can report (§6). `endpoint` is an id; no fact names a URL, which may hold a secret. */
export type WebhookObservation =
  /** `failure`: kind of the failure without a status, such as `timeout`; undefined: the receiver answered. */
  | {
      readonly kind: 'delivery-attempted';
      readonly endpoint: string;
      readonly delivery: string;
      readonly outcome: 'delivered' | 'failed';
      readonly status: number | undefined;
      readonly failure: string | undefined;
      readonly durationMs: number;
    }
  /** An endpoint failed so often in a row that it is left alone until the time (ms since the epoch). */
  | { readonly kind: 'endpoint-left-alone'; readonly endpoint: string; readonly until: number }
  | { readonly kind: 'endpoint-answers-again'; readonly endpoint: string }
  /** Its owner was told so. */
  | { readonly kind: 'endpoint-failing'; readonly endpoint: string }
  | { readonly kind: 'endpoint-disabled'; readonly endpoint: string; readonly reason: 'gone' | 'failing' }
  /** The guard let no webhook through to a destination; `why` may name a private network, and is for operators alone. */
  | {
      readonly kind: 'egress-refused';
      readonly hostname: string;
      readonly port: number;
      readonly reason: 'address' | 'port' | 'own-listener';
      readonly why: string;
    }
  /** How many of the lanes of endpoints this process sends for from now on. */
  | { readonly kind: 'lanes-held'; readonly lanes: number; readonly of: number }
  /** Something of the sender's own did not work; it goes on. */
  | { readonly kind: 'sending-failed'; readonly what: string; readonly error: unknown };

/** What receiving webhooks can report (§4.14). No fact holds a body, a signature or a secret. */
export type ReceivedObservation =
  /** A message came to a declared sender; `reason`: why it was refused. */
  | {
      readonly kind: 'webhook-received';
      readonly sender: string;
      readonly outcome: 'accepted' | 'duplicate' | 'challenge' | 'refused';
      readonly reason: string | undefined;
    }
  /** A message was handed on, or that failed; `lagMs` since it came, or was replayed. */
  | {
      readonly kind: 'received-handed-on';
      readonly sender: string;
      readonly message: string;
      readonly outcome: 'processed' | 'failed';
      readonly failure: string | undefined;
      /** Whether another attempt will follow by itself. */
      readonly again: boolean;
      readonly lagMs: number;
      readonly durationMs: number;
    }
  /** Handing on messages of a sender fails so often in a row that they wait until the time (ms since the epoch). */
  | { readonly kind: 'sender-paused'; readonly sender: string; readonly until: number }
  /** A thread of handlers was ended, for the reason given; another follows when one is needed. */
  | { readonly kind: 'handler-thread-ended'; readonly reason: string; readonly messages: number }
  /** Something of the receiver's own did not work; it goes on. */
  | { readonly kind: 'receiving-failed'; readonly what: string; readonly error: unknown };

/** What connections become, and what becomes of them (§4.10, §4.13). Hosts and ports are those that a client asked for. */
export type ConnectionObservation =
  /** Octets for which the memory budget had no room; of refusals within a second the first alone. `heldBytes`: what was held then. */
  | {
      readonly kind: 'memory-refused';
      readonly use: string;
      readonly bytes: number;
      readonly heldBytes: number;
      readonly bytesMax: number;
      /** Since the last such fact, this one included. */
      readonly refusals: number;
    }
  /** A certificate was read, at the start or because its files changed; `notAfter` as an ISO 8601 time. */
  | { readonly kind: 'certificate-loaded'; readonly subject: string; readonly notAfter: string }
  /** Files of the certificate changed and cannot be used; the one before stays. */
  | { readonly kind: 'certificate-failed'; readonly error: unknown }
  /** An HTTP/2 connection was closed because of what its client did. */
  | { readonly kind: 'http2-cut'; readonly peer: string; readonly why: string }
  /** A WebSocket ended, with the code of RFC 6455 §7.4 that it ended with. */
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
      /** Id of the principal; undefined: nobody is known. */
      readonly principal: string | undefined;
      readonly how: TunnelKind;
      readonly host: string;
      readonly port: number;
      readonly status: number;
      readonly code: string;
      /** For operators: the network of an address, the list that a host is missing in, the failure of a connection. */
      readonly why: string;
    }
  /** A list of hosts in the mode `report` would have refused a tunnel that was opened. */
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
      /** From the client to the destination, and back. */
      readonly sentBytes: number;
      readonly receivedBytes: number;
      readonly durationMs: number;
      readonly why: TunnelEnd;
    }
  /** Something of the program's own did not work on a connection; it goes on. */
  | { readonly kind: 'connection-failed'; readonly what: string; readonly error: unknown };

export type TunnelKind = 'connect' | 'udp' | 'forward';

export type TunnelEnd =
  /** Both sides ended. */
  | 'ended'
  /** The client's connection broke, or the destination's. */
  | 'client-reset'
  | 'destination-reset'
  | 'idle'
  /** The octets of the day are used up. */
  | 'bytes'
  /** The credential that it was opened with ended. */
  | 'revoked'
  | 'drained';

export type Observe = (observation: Observation) => void;
